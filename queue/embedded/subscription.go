package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/internal/headers"
)

// subscription implements [queue.Subscription].
type subscription struct {
	b     *Broker
	line  *line
	lease time.Duration
	slots slots

	close sync.Once
	done  chan struct{}
}

// Subscribe implements [queue.Broker].
func (b *Broker) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	switch {
	case cfg.Lease < 0:
		return nil, fmt.Errorf("lease %v: must not be negative", cfg.Lease)
	case cfg.Slots < 0:
		return nil, fmt.Errorf("slots %d: must not be negative", cfg.Slots)
	case cfg.Lease == 0:
		cfg.Lease = queue.DefaultLease
	}
	l, err := b.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := b.follow(); err != nil {
		return nil, err
	}
	return &subscription{b: b, line: l, lease: cfg.Lease, slots: newSlots(max(1, cfg.Slots)), done: make(chan struct{})}, nil
}

// Close implements [queue.Subscription].
func (s *subscription) Close() error {
	s.close.Do(func() { close(s.done) })
	return nil
}

// Healthy implements [queue.Subscription].
func (s *subscription) Healthy() error {
	select {
	case <-s.done:
		return fmt.Errorf("subscription to %q: %w", s.line.name, queue.ErrClosed)
	case <-s.b.done:
		return fmt.Errorf("broker of %q: %w", s.line.name, queue.ErrClosed)
	default:
		return nil
	}
}

// Receive implements [queue.Subscription].
func (s *subscription) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	for {
		if err := s.Healthy(); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, freed, next := s.slots.reserve(max(1, most), floorMilli(time.Now()))
		if n == 0 {
			var limit time.Duration // none while no lease is going to end
			if next != 0 {
				limit = max(time.Until(time.UnixMilli(next)), 1)
			}
			if err := s.wait(ctx, freed, limit); err != nil {
				return nil, err
			}
			continue
		}
		mark := s.line.mark()
		leases, err := s.take(ctx, n)
		if err != nil {
			return nil, s.failed(ctx, err)
		}
		if len(leases) == n {
			s.line.wake(1) // there may be more
		}
		if len(leases) > 0 {
			return leases, nil
		}
		ready := s.line.join(mark)
		if err := s.wait(ctx, ready, 0); err != nil {
			s.line.leave(ready)
			return nil, err
		}
	}
}

// wait blocks until ready, for at most limit if that is not zero.
func (s *subscription) wait(ctx context.Context, ready <-chan struct{}, limit time.Duration) error {
	var timeout <-chan time.Time
	if limit != 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-ready:
	case <-timeout:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return s.Healthy()
	case <-s.b.done:
		return s.Healthy()
	}
	return nil
}

// failurePause paces the calls of a caller that repeats a failed receive at once.
const failurePause = 100 * time.Millisecond

func (s *subscription) failed(ctx context.Context, err error) error {
	s.line.wake(1) // the wake that this call may have used up
	err = fmt.Errorf("receive from %q: %w", s.line.name, translate(err))
	if errors.Is(err, queue.ErrUnavailable) {
		_ = s.wait(ctx, nil, failurePause) // err tells more than why the pause was cut short
	}
	return err
}

// take leases up to n visible messages. n slots are reserved for it; it keeps those that it fills.
func (s *subscription) take(ctx context.Context, n int) ([]*queue.Lease, error) {
	start := time.Now()
	var found []delivery
	var due int64 // of the leases taken or, with none, of the next message
	err := s.b.file.Write(ctx, false, func(tx *sqlitefile.Tx) error {
		now := time.Now()
		due = ceilMilli(now.Add(s.lease))
		var err error
		if found, err = peek(tx, s.line.id, floorMilli(now), n, found[:0]); err != nil {
			return err
		}
		if len(found) == 0 {
			err := tx.QueryRow(sqlNextDue, []any{s.line.id}, &due)
			if errors.Is(err, sql.ErrNoRows) {
				due, err = 0, nil
			}
			return err
		}
		until := any(due) // boxed once
		for i := range found {
			if _, err := tx.Exec(sqlLease, until, found[i].id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.slots.fill(n, nil)
		return nil, err
	}
	if due != 0 {
		s.line.note(due)
	}
	deadline := start.Add(s.lease)
	leases := make([]*queue.Lease, len(found))
	handles := make([]*handle, len(found))
	for i := range found {
		d := &found[i]
		handles[i] = &handle{sub: s, id: d.id, delivery: d.deliveries + 1, due: due}
		leases[i] = d.lease(s.line.name, handles[i], deadline)
	}
	s.slots.fill(n, handles)
	return leases, nil
}

// delivery is a message as the table gives it, before it was leased.
type delivery struct {
	id, deliveries, attempts, enqueued int64

	headers map[string]string
	body    []byte
}

func peek(tx *sqlitefile.Tx, queue, now int64, n int, into []delivery) ([]delivery, error) {
	rows, err := tx.Query(sqlPeek, queue, now, n)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var d delivery
		var head []byte
		if err := rows.Scan(&d.id, &d.deliveries, &d.attempts, &d.enqueued, &head, &d.body); err != nil {
			return nil, err
		}
		d.headers, _ = headers.Decode(head) // a message without its envelope ends in the dead letters; an error here would block the queue
		into = append(into, d)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return into, rows.Close()
}

func (d *delivery) lease(name string, h *handle, deadline time.Time) *queue.Lease {
	l := queue.NewLease(queue.Message{Body: d.body, Headers: d.headers}, h, deadline)
	l.Queue = name
	l.ID = strconv.FormatInt(d.id, 10)
	l.DeliveryCount = int(d.deliveries + 1)
	l.Attempts = int(d.attempts + 1)
	l.EnqueuedAt = time.UnixMilli(d.enqueued)
	return l
}
