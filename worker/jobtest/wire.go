package jobtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// wire is the broker as one worker, or a producer, sees it: it may be down, the worker may be dead, and the gate decides when to receive.
type wire struct {
	queue.Broker
	bench    *Bench
	crew     *crew // nil for producers
	producer bool
}

// cut is why a call cannot be made now.
func (b *Bench) cut(c *crew, p Part, unavailable error) error {
	if c != nil && c.alive.Err() != nil {
		return ErrKilled
	}
	if c != nil && c.apart.Load() {
		return fmt.Errorf("jobtest: %s was isolated by the test: %w", c.name, unavailable)
	}
	if b.faults.broken(p) {
		return fmt.Errorf("jobtest: %s was broken by the test: %w", p, unavailable)
	}
	return nil
}

func (w *wire) cut() error { return w.bench.cut(w.crew, PartBroker, queue.ErrUnavailable) }

func (w *wire) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	if err := w.cut(); err != nil {
		return repeat(queue.PublishResult{Err: err}, len(pubs))
	}
	results := w.Broker.Publish(ctx, name, pubs)
	for i, r := range results {
		if r.Err == nil {
			w.bench.ledger.published(name, r.ID, pubs[i], w.producer)
		}
	}
	return results
}

func (w *wire) Depth(ctx context.Context, name string) (queue.Depth, error) {
	if err := w.cut(); err != nil {
		return queue.Depth{}, err
	}
	return w.Broker.Depth(ctx, name)
}

func (w *wire) CreateQueue(ctx context.Context, name string) error {
	if err := w.cut(); err != nil {
		return err
	}
	return w.Broker.CreateQueue(ctx, name)
}

func (w *wire) Queues(ctx context.Context) ([]queue.QueueInfo, error) {
	if err := w.cut(); err != nil {
		return nil, err
	}
	return w.Broker.Queues(ctx)
}

// database returns what x lives in, or x itself: two things that do not say so share nothing.
func database(x any) any {
	if in, ok := x.(interface{ Database() any }); ok {
		return in.Database()
	}
	return x
}

// Database lets the worker find out that broker and claims share one, as they do in production.
func (w *wire) Database() any { return database(w.Broker) }

// Close does nothing: the bench owns the broker.
func (w *wire) Close() error { return nil }

func (w *wire) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	if err := w.cut(); err != nil {
		return nil, err
	}
	sub, err := w.Broker.Subscribe(ctx, name, cfg)
	if err != nil {
		return nil, err
	}
	return &subscription{Subscription: sub, wire: w, queue: name}, nil
}

type subscription struct {
	queue.Subscription
	wire  *wire
	queue string
}

func (s *subscription) Healthy() error {
	if err := s.wire.cut(); err != nil {
		return err
	}
	return s.Subscription.Healthy()
}

func (s *subscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	for {
		n, period, err := s.wire.bench.gate.enter(ctx, s.queue, most)
		if err != nil {
			return nil, err
		}
		if err := s.wire.cut(); err != nil {
			s.wire.bench.gate.unused(period, n)
			return nil, err
		}
		leases, err := s.receive(ctx, period, n)
		if cut := s.wire.cut(); cut != nil && len(leases) == 0 {
			return nil, cut
		}
		s.wire.bench.gate.unused(period, n-len(leases))
		if len(leases) > 0 || ctx.Err() != nil || period.Err() == nil {
			return leases, err
		}
	}
}

// receive waits no longer than the gate stays as it is.
func (s *subscription) receive(ctx, period context.Context, n int) ([]*queue.Lease, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(period, cancel)()
	leases, err := s.Subscription.Receive(ctx, n)
	for _, lease := range leases {
		h := &handle{bench: s.wire.bench, crew: s.wire.crew, lease: lease}
		lease.Decorate(func(inner queue.Handle) queue.Handle {
			h.inner = inner
			return h
		})
		s.wire.bench.ledger.received(h, lease)
	}
	return leases, err
}

// handle is one lease as its worker sees it.
type handle struct {
	bench *Bench
	crew  *crew
	lease *queue.Lease
	inner queue.Handle
}

func (h *handle) Extend(ctx context.Context, d time.Duration) error {
	if err := h.bench.cut(h.crew, PartBroker, queue.ErrUnavailable); err != nil {
		return err
	}
	start := time.Now()
	err := h.inner.Extend(ctx, d)
	switch {
	case err == nil:
		h.bench.ledger.extended(h.lease.ID, start.Add(d))
	case errors.Is(err, queue.ErrLeaseLost):
		h.bench.ledger.lost(h)
	}
	return err
}

func (h *handle) Settle(ctx context.Context, s queue.Settlement) error {
	if err := h.bench.cut(h.crew, PartBroker, queue.ErrUnavailable); err != nil {
		return err
	}
	err := h.inner.Settle(ctx, s)
	switch {
	case errors.Is(err, queue.ErrLeaseLost):
		h.bench.ledger.lost(h)
		return err
	case err != nil:
		return err
	case s.Action == queue.ActionAck:
		h.bench.ledger.acked(h.lease.ID)
	default:
		h.bench.ledger.returned(h.lease.ID, time.Now().Add(s.Delay))
	}
	return nil
}

// SettleTx implements [queue.TxHandle].
func (h *handle) SettleTx(tx any, s queue.Settlement) error {
	inner, ok := h.inner.(queue.TxHandle)
	if !ok {
		return errors.ErrUnsupported
	}
	if err := h.bench.cut(h.crew, PartBroker, queue.ErrUnavailable); err != nil {
		return err
	}
	return inner.SettleTx(tx, s)
}

// Settled implements [queue.TxHandle]. Only acks join a transaction.
func (h *handle) Settled(s queue.Settlement) {
	h.inner.(queue.TxHandle).Settled(s)
	h.bench.ledger.acked(h.lease.ID)
}

func repeat[T any](v T, n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = v
	}
	return list
}

func cutAll[T any](err error, items []T, do func() []error) []error {
	if err != nil {
		return repeat(err, len(items))
	}
	return do()
}

// deadWire is the dead-letter store as one worker sees it.
type deadWire struct {
	dlq.Store
	bench *Bench
	crew  *crew
}

func (w *deadWire) cut() error { return w.bench.cut(w.crew, PartDeadLetters, dlq.ErrUnavailable) }

func (w *deadWire) Put(ctx context.Context, entries []dlq.Entry) []error {
	return cutAll(w.cut(), entries, func() []error { return w.Store.Put(ctx, entries) })
}

func (w *deadWire) Depth(ctx context.Context) (dlq.Depth, error) {
	if err := w.cut(); err != nil {
		return dlq.Depth{}, err
	}
	return w.Store.Depth(ctx)
}

func (w *deadWire) Reserve(ctx context.Context, f dlq.Filter, r dlq.Reservation) ([]dlq.Entry, error) {
	if err := w.cut(); err != nil {
		return nil, err
	}
	return w.Store.Reserve(ctx, f, r)
}

func (w *deadWire) Resolve(ctx context.Context, owner string, rs []dlq.Resolution) []error {
	return cutAll(w.cut(), rs, func() []error { return w.Store.Resolve(ctx, owner, rs) })
}

func (w *deadWire) Expire(ctx context.Context, retention time.Duration, limit int) (int, error) {
	if err := w.cut(); err != nil {
		return 0, err
	}
	return w.Store.Expire(ctx, retention, limit)
}
