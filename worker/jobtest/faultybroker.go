package jobtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// faultyBroker is the broker as one worker, or a producer, sees it: it may be down, the worker may be dead, and the gate decides when to receive.
type faultyBroker struct {
	queue.Broker
	bench    *Bench
	process  *process // nil for producers
	producer bool
}

// cut is why a call cannot be made now.
func (b *Bench) cut(c *process, p Part, unavailable error) error {
	if c != nil && c.alive.Err() != nil {
		return ErrKilled
	}
	if c != nil && c.isolated.Load() {
		return fmt.Errorf("jobtest: %s was isolated by the test: %w", c.name, unavailable)
	}
	if b.faults.broken(p) {
		return fmt.Errorf("jobtest: %s was broken by the test: %w", p, unavailable)
	}
	return nil
}

func (w *faultyBroker) cut() error { return w.bench.cut(w.process, PartBroker, queue.ErrUnavailable) }

func (w *faultyBroker) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
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

func (w *faultyBroker) Depth(ctx context.Context, name string) (queue.Depth, error) {
	if err := w.cut(); err != nil {
		return queue.Depth{}, err
	}
	return w.Broker.Depth(ctx, name)
}

func (w *faultyBroker) CreateQueue(ctx context.Context, name string) error {
	if err := w.cut(); err != nil {
		return err
	}
	return w.Broker.CreateQueue(ctx, name)
}

func (w *faultyBroker) Queues(ctx context.Context) ([]queue.QueueInfo, error) {
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
func (w *faultyBroker) Database() any { return database(w.Broker) }

// Close does nothing: the bench owns the broker.
func (w *faultyBroker) Close() error { return nil }

func (w *faultyBroker) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	if err := w.cut(); err != nil {
		return nil, err
	}
	sub, err := w.Broker.Subscribe(ctx, name, cfg)
	if err != nil {
		return nil, err
	}
	return &subscription{Subscription: sub, broker: w, queue: name}, nil
}

type subscription struct {
	queue.Subscription
	broker *faultyBroker
	queue  string
}

func (s *subscription) Healthy() error {
	if err := s.broker.cut(); err != nil {
		return err
	}
	return s.Subscription.Healthy()
}

func (s *subscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	for {
		n, period, err := s.broker.bench.stepper.enter(ctx, s.queue, most)
		if err != nil {
			return nil, err
		}
		if err := s.broker.cut(); err != nil {
			s.broker.bench.stepper.unused(period, n)
			return nil, err
		}
		leases, err := s.receive(ctx, period, n)
		if cut := s.broker.cut(); cut != nil && len(leases) == 0 {
			return nil, cut
		}
		s.broker.bench.stepper.unused(period, n-len(leases))
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
		h := &handle{bench: s.broker.bench, process: s.broker.process, lease: lease}
		lease.Decorate(func(inner queue.Handle) queue.Handle {
			h.inner = inner
			return h
		})
		s.broker.bench.ledger.received(h, lease)
	}
	return leases, err
}

// handle is one lease as its worker sees it.
type handle struct {
	bench   *Bench
	process *process
	lease   *queue.Lease
	inner   queue.Handle
}

func (h *handle) Extend(ctx context.Context, d time.Duration) error {
	if err := h.bench.cut(h.process, PartBroker, queue.ErrUnavailable); err != nil {
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
	if err := h.bench.cut(h.process, PartBroker, queue.ErrUnavailable); err != nil {
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
	if err := h.bench.cut(h.process, PartBroker, queue.ErrUnavailable); err != nil {
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

// faultyDeadLetters is the dead-letter store as one worker sees it.
type faultyDeadLetters struct {
	dlq.Store
	bench   *Bench
	process *process
}

func (w *faultyDeadLetters) cut() error {
	return w.bench.cut(w.process, PartDeadLetters, dlq.ErrUnavailable)
}

func (w *faultyDeadLetters) Put(ctx context.Context, entries []dlq.Entry) []error {
	return cutAll(w.cut(), entries, func() []error { return w.Store.Put(ctx, entries) })
}

func (w *faultyDeadLetters) Depth(ctx context.Context) (dlq.Depth, error) {
	if err := w.cut(); err != nil {
		return dlq.Depth{}, err
	}
	return w.Store.Depth(ctx)
}

func (w *faultyDeadLetters) Reserve(ctx context.Context, f dlq.Filter, r dlq.Reservation) ([]dlq.Entry, error) {
	if err := w.cut(); err != nil {
		return nil, err
	}
	return w.Store.Reserve(ctx, f, r)
}

func (w *faultyDeadLetters) Resolve(ctx context.Context, owner string, rs []dlq.Resolution) []error {
	return cutAll(w.cut(), rs, func() []error { return w.Store.Resolve(ctx, owner, rs) })
}

func (w *faultyDeadLetters) Expire(ctx context.Context, retention time.Duration, limit int) (int, error) {
	if err := w.cut(); err != nil {
		return 0, err
	}
	return w.Store.Expire(ctx, retention, limit)
}
