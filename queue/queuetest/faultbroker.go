package queuetest

import (
	"context"
	"slices"
	"sync"

	"github.com/caisson-go/caisson/queue"
)

// FaultBroker is a broker with faults put in front of it. It is safe for concurrent use.
type FaultBroker struct {
	queue.Broker // the real one: all that is not overridden

	mu    sync.Mutex
	plan  Plan
	count map[Op]int
}

// NewFaultBroker puts plan in front of b. A nil plan lets everything through.
func NewFaultBroker(b queue.Broker, plan Plan) *FaultBroker {
	return &FaultBroker{Broker: b, plan: plan, count: map[Op]int{}}
}

// SetPlan replaces the plan and starts to count calls from 1 again.
func (b *FaultBroker) SetPlan(plan Plan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plan = plan
	clear(b.count)
}

// strike counts the call p and returns what happens to it.
func (b *FaultBroker) strike(p Point) Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[p.Op]++
	p.N = b.count[p.Op]
	if b.plan == nil {
		return Fault{}
	}
	return b.plan(p)
}

// Publish publishes what is not struck in one call, so that a batch stays a batch.
func (b *FaultBroker) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	results := make([]queue.PublishResult, len(pubs))
	faults := make([]Fault, len(pubs))
	var passed []queue.Publication
	var index []int // of passed in pubs
	for i, p := range pubs {
		f := b.strike(Point{Op: OpPublish, Queue: name, Message: p.Message})
		faults[i] = f
		if err := hold(ctx, f.Delay); err != nil {
			results[i].Err = err
			continue
		}
		if f.Before != nil {
			results[i].Err = f.Before
			continue
		}
		passed, index = append(passed, p), append(index, i)
		if f.Duplicate {
			passed, index = append(passed, p), append(index, i)
		}
	}
	if len(passed) == 0 {
		return results
	}
	for i, r := range b.Broker.Publish(ctx, name, passed) {
		to := index[i]
		results[to] = r
		if after := faults[to].After; r.Err == nil && after != nil {
			results[to] = queue.PublishResult{Err: after}
		}
	}
	return results
}

// Subscribe returns a subscription whose receives and leases can be struck.
func (b *FaultBroker) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	sub, err := b.Broker.Subscribe(ctx, name, cfg)
	if err != nil {
		return nil, err
	}
	return &faultSubscription{Subscription: sub, broker: b, queue: name}, nil
}

type faultSubscription struct {
	queue.Subscription
	broker *FaultBroker
	queue  string

	mu      sync.Mutex
	doubled []*queue.Lease // handed over again at the next Receive
}

func (s *faultSubscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	f := s.broker.strike(Point{Op: OpReceive, Queue: s.queue})
	if err := hold(ctx, f.Delay); err != nil {
		return nil, err
	}
	if f.Before != nil {
		return nil, f.Before
	}
	if again := s.takeDoubled(most); len(again) > 0 {
		return again, nil
	}
	leases, err := s.Subscription.Receive(ctx, most)
	if err != nil {
		return nil, err
	}
	if f.After != nil { // the response was lost: nobody has the leases, and they end by themselves
		return nil, f.After
	}
	return s.deliver(ctx, leases)
}

// deliver puts the faults of OpDeliver on leases.
func (s *faultSubscription) deliver(ctx context.Context, leases []*queue.Lease) ([]*queue.Lease, error) {
	var out []*queue.Lease
	var failed error
	for _, l := range leases {
		f := s.broker.strike(Point{Op: OpDeliver, Queue: s.queue, Message: l.Message})
		err := hold(ctx, f.Delay)
		if err == nil {
			err = f.Before
		}
		if err != nil {
			failed = err
			// Given back apart from ctx, which may be what ended the hold.
			if err := l.Release(context.WithoutCancel(ctx)); err != nil {
				failed = err
			}
			continue
		}
		handle := &faultHandle{lease: l, sub: s}
		if f.Expire {
			if err := handle.expire(ctx); err != nil {
				failed = err
				continue
			}
		}
		out = append(out, handle.newLease())
		if f.Duplicate {
			s.mu.Lock()
			s.doubled = append(s.doubled, (&faultHandle{lease: l, sub: s}).newLease())
			s.mu.Unlock()
		}
	}
	if len(out) == 0 {
		return nil, failed
	}
	return out, nil
}

func (s *faultSubscription) takeDoubled(most int) []*queue.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(most, len(s.doubled))
	taken := slices.Clone(s.doubled[:n])
	s.doubled = s.doubled[n:]
	return taken
}
