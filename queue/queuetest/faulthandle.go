package queuetest

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// faultHandle stands between a lease that a test holds and the real lease. Two of them share one real lease when a
// delivery was doubled.
type faultHandle struct {
	lease   *queue.Lease
	sub     *faultSubscription
	expired bool // [queue.Lease] makes one call at a time, and deliver is done before the first
}

// newLease returns a lease that looks like the real one.
func (h *faultHandle) newLease() *queue.Lease {
	m := queue.Message{Body: h.lease.Body, Headers: maps.Clone(h.lease.Headers)}
	l := queue.NewLease(m, h, h.lease.Deadline())
	l.Queue, l.ID, l.EnqueuedAt = h.lease.Queue, h.lease.ID, h.lease.EnqueuedAt
	l.DeliveryCount, l.Attempts = h.lease.DeliveryCount, h.lease.Attempts
	l.Group, l.Ceiling = h.lease.Group, h.lease.Ceiling
	return l
}

// expire takes the message away as the broker would at the deadline: visible again, with the attempt spent.
func (h *faultHandle) expire(ctx context.Context) error {
	h.expired = true
	err := h.lease.Retry(context.WithoutCancel(ctx), 0, false)
	if errors.Is(err, queue.ErrLeaseLost) || errors.Is(err, queue.ErrSettled) {
		return nil
	}
	return err
}

func (h *faultHandle) Extend(ctx context.Context, d time.Duration) error {
	return h.call(ctx, Point{Op: OpExtend}, func() error { return h.lease.Extend(ctx, d) })
}

func (h *faultHandle) Settle(ctx context.Context, s queue.Settlement) error {
	return h.call(ctx, Point{Op: OpSettle, Settlement: s}, func() error {
		err := h.lease.Settle(ctx, s)
		if errors.Is(err, queue.ErrSettled) && s.Action == queue.ActionAck {
			return nil // its double, or this call before its answer was lost, settled it: brokers do not mind
		}
		return err
	})
}

func (h *faultHandle) call(ctx context.Context, p Point, real func() error) error {
	p.Queue, p.Message = h.sub.queue, h.lease.Message
	f := h.sub.broker.strike(p)
	if err := hold(ctx, f.Delay); err != nil {
		return err
	}
	switch {
	case h.expired:
		return queue.ErrLeaseLost
	case f.Expire:
		if err := h.expire(ctx); err != nil {
			return err
		}
		return queue.ErrLeaseLost
	case f.Before != nil:
		return f.Before
	}
	err := real()
	if errors.Is(err, queue.ErrSettled) {
		return queue.ErrLeaseLost // settled through the other delivery, or before its answer was lost
	}
	if err == nil {
		return f.After
	}
	return err
}
