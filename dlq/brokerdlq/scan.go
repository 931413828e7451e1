package brokerdlq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// scan receives from the dead-letter queues of some queues, one after the other. It has one user, and a goroutine that extends the
// leases.
type scan struct {
	cfg   Config
	queue []string // still to go through
	sub   queue.Subscription
	// asked is how often the queue was silent although the broker counts messages in it.
	asked int
	// elsewhere is how many messages of the queues that the scan has left are with others, or on their way back, by the broker's count.
	elsewhere int64
	// failingSince is when receives began to fail; zero if they do not.
	failingSince time.Time
	// end is when the scan began: newer messages are left. Zero leaves none.
	end time.Time

	letters map[string]*letter // by name
	order   []*letter          // those that match, as they came
	byID    map[string]*letter
	// runs holds the runs that this scan has published, by job: one that died again meanwhile is left.
	runs map[string]int

	looked, matched, passed, copies, later int

	mu         sync.Mutex // guards leased and changes of sub
	leased     leaseSet
	stop       context.CancelFunc
	heartbeats sync.WaitGroup
}

// slots is how many messages one subscription holds. When all are kept, the next subscription follows: a broker that prefetches must not send
// everything that a scan may keep at once.
const slots = 256

// scan begins a scan. It must be closed.
func (q *Queues) scan(ctx context.Context, f dlq.Filter) (*scan, error) {
	names, err := q.sources(ctx, f)
	if err != nil {
		return nil, err
	}
	s := &scan{
		cfg: q.cfg, queue: names, end: q.cfg.Now(), letters: map[string]*letter{}, byID: map[string]*letter{}, runs: map[string]int{},
		leased: leaseSet{subs: map[*queue.Lease]queue.Subscription{}},
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.heartbeats.Go(func() { s.heartbeat(ctx) })
	return s, nil
}

// fill receives until limit letters that match f are fresh, or there are no more for now. With none at all the scan has come to its end.
// It returns [ErrTooMany] when so many are kept that there is no room for one that matches.
func (s *scan) fill(ctx context.Context, f dlq.Filter, limit int) error {
	for len(s.order) < limit && len(s.queue) > 0 {
		n, bytes := s.leasedSize()
		if n >= s.cfg.MaxKept || bytes >= s.cfg.MaxKeptBytes {
			if len(s.order) > 0 {
				return nil
			}
			return fmt.Errorf("%w: %d messages of %d bytes do not match or could not be published: choose a filter that matches more, or move all of "+
				"them to a store that can search (dlq-replay import)", ErrTooMany, n, bytes)
		}
		leases, err := s.receive(ctx, min(limit-len(s.order), s.cfg.MaxKept-n))
		if err != nil {
			return err
		}
		if len(leases) == 0 && len(s.order) > 0 {
			return nil // more may come when these are settled: on a FIFO queue the rest of their groups waits for that
		}
		for _, l := range leases {
			if err := s.classify(ctx, f, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// receive returns leases. None means that the queue had nothing for a while; with nothing fresh the scan then goes on to the next one.
func (s *scan) receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	name := s.queue[0]
	if err := s.subscribe(ctx, name); err != nil || s.sub == nil {
		return nil, err
	}
	idle := s.cfg.Idle
	if len(s.order) > 0 {
		idle /= 3
	}
	waiting, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	leases, err := s.sub.Receive(waiting, min(most, s.free()))
	for _, l := range leases {
		s.addLease(l)
	}
	switch {
	case len(leases) > 0:
		s.failingSince = time.Time{}
		return leases, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, queue.ErrQueueNotFound): // deleted since
		return nil, s.leave()
	case errors.Is(err, queue.ErrUnavailable):
		return nil, s.tolerate(fmt.Errorf("read dead letters of %s: %w", name, err))
	case err != nil && waiting.Err() == nil:
		return nil, fmt.Errorf("read dead letters of %s: %w", name, err)
	case waiting.Err() == nil, len(s.order) > 0, !s.failingSince.IsZero(): // not silent for as long as Idle
		s.failingSince = time.Time{}
		return nil, nil
	}
	if more, err := s.maybeMore(ctx, name); more || err != nil {
		return nil, err
	}
	return nil, s.leave()
}

// maybeMore reports whether a silent queue may have more messages, by the broker's count. Counts may be old, so that they are believed twice
// at most. A queue that the broker cannot count is taken for empty. Messages that somebody else has leased, and those that the broker counts
// and does not hand out, are counted as elsewhere.
func (s *scan) maybeMore(ctx context.Context, name string) (bool, error) {
	depth, err := s.cfg.Broker.Depth(ctx, queue.DLQ(name))
	switch {
	case ctx.Err() != nil: // and not the end of the scan
		return false, ctx.Err()
	case err != nil:
		return false, nil
	case depth.Ready.N > 0 && s.asked < 2:
		s.asked++
		return true, nil
	}
	s.elsewhere += depth.Ready.N + max(0, depth.InFlight.N-s.known(queue.DLQ(name)))
	return false, nil
}

// leave goes on to the next queue.
func (s *scan) leave() error {
	s.queue, s.asked = s.queue[1:], 0
	return s.unsubscribe()
}

// tolerate returns err once receives have failed for as long as a lease. Until then the driver paces the calls.
func (s *scan) tolerate(err error) error {
	now := s.cfg.Now()
	if s.failingSince.IsZero() {
		s.failingSince = now
	}
	if now.Sub(s.failingSince) < s.cfg.Lease {
		return nil
	}
	return err
}

// subscribe sees to a subscription with room. There is none if the queue does not exist, and then the next queue is up.
func (s *scan) subscribe(ctx context.Context, name string) error {
	if s.sub != nil && s.free() < slots/4 {
		if err := s.unsubscribe(); err != nil {
			return err
		}
	}
	if s.sub != nil {
		return nil
	}
	sub, err := s.cfg.Broker.Subscribe(ctx, queue.DLQ(name), queue.SubscribeConfig{Lease: s.lease(name), Slots: slots})
	switch {
	case errors.Is(err, queue.ErrQueueNotFound):
		return s.leave()
	case err != nil:
		return fmt.Errorf("read dead letters of %s: %w", name, err)
	}
	s.use(sub)
	return nil
}

// lease returns how long messages are leased, which some brokers limit.
func (s *scan) lease(name string) time.Duration {
	if most := s.cfg.Broker.Capabilities(queue.DLQ(name)).MaxLease; most > 0 {
		return min(s.cfg.Lease, most)
	}
	return s.cfg.Lease
}

// unsubscribe ends the subscription. What it handed out stays leased.
func (s *scan) unsubscribe() error {
	sub := s.sub
	if sub == nil {
		return nil
	}
	s.use(nil)
	if err := sub.Close(); err != nil {
		return fmt.Errorf("end of reading dead letters: %w", err)
	}
	return nil
}

// report tells how the scan went.
func (s *scan) report() ScanReport {
	return ScanReport{Looked: s.looked, PassedOver: s.passed, Later: s.later, Copies: s.copies, Incomplete: len(s.queue) > 0 || s.elsewhere > 0}
}
