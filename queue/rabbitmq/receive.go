package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// Receive implements [queue.Subscription].
func (s *subscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	s.enter()
	defer s.leave()
	var limit <-chan time.Time // runs while nothing can be received
	for {
		now := time.Now()
		took, more, changed, err := s.take(ctx, max(most, 1), now)
		if len(took) > 0 {
			if more {
				s.announce()
			}
			return s.leases(took, now), nil
		}
		var why error
		switch {
		case errors.Is(err, queue.ErrUnavailable):
			why = err
		case err != nil:
			return nil, err
		}
		if why == nil {
			limit = nil
		} else if limit == nil {
			timer := time.NewTimer(waitTimeout)
			defer timer.Stop()
			limit = timer.C
		}
		_, blocked := s.b.blocking()
		select {
		case <-s.ready:
		case <-changed:
		case <-blocked:
		case <-ctx.Done():
			s.announce() // the token that this call may have used up
			return nil, ctx.Err()
		case <-limit:
			return nil, fmt.Errorf("receive from %q: %w", s.name, why)
		}
	}
}

func (s *subscription) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
}

func (s *subscription) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	s.called = time.Now()
}

// take hands out up to n buffered deliveries. With none it returns why, or nothing if it is worth waiting for them, and a channel that is
// closed when that changes.
func (s *subscription) take(ctx context.Context, n int, now time.Time) (took []*handle, more bool, changed <-chan struct{}, err error) {
	why, _ := s.b.blocking()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cur
	switch {
	case s.closed:
		return nil, false, s.changed, fmt.Errorf("receive from %q: %w", s.name, queue.ErrClosed)
	case ctx.Err() != nil:
		s.announce()
		return nil, false, s.changed, ctx.Err()
	case c == nil:
		return nil, false, s.changed, s.why
	case why != "":
		return nil, false, s.changed, unavailable("nothing is handed out", errors.New(why))
	}
	if !c.consuming {
		s.want()
	}
	took = c.takeLocked(n)
	for _, h := range took {
		arrived := h.due
		h.state = stateHeld
		h.due = now.Add(s.lease)
		if end := s.ceiling(arrived); !end.IsZero() && end.Before(h.due) {
			h.due = end
		}
		h.ceiling = s.ceiling(arrived)
		c.dues.add(h)
		c.armLocked(h.due)
	}
	return took, len(c.buf) > 0, s.changed, nil
}

// ceiling is when the broker's patience with a delivery is nearly over; zero if it has no limit.
func (s *subscription) ceiling(arrived time.Time) time.Time {
	most := s.b.maxLease
	if most == 0 {
		return time.Time{}
	}
	return arrived.Add(most)
}

func (s *subscription) leases(took []*handle, now time.Time) []*queue.Lease {
	leases := make([]*queue.Lease, len(took))
	for i, h := range took {
		deadline := now.Add(s.lease)
		if !h.ceiling.IsZero() && h.ceiling.Before(deadline) {
			deadline = h.ceiling
		}
		l := queue.NewLease(message(&h.d), h, deadline)
		l.Queue = s.name
		if l.ID = h.d.MessageId; l.ID == "" {
			l.ID = s.b.newID() // another at each delivery: a job is rather run twice than taken for another
		}
		l.DeliveryCount, l.Attempts = h.n.deliveries, h.n.attempts
		l.EnqueuedAt = h.d.Timestamp
		l.Ceiling = h.ceiling
		l.Moved = s.b.topology.moved(s.name, h.d.Headers)
		leases[i] = l
	}
	return leases
}
