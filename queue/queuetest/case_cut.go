package queuetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// caseCut holds three messages while the connections break, and waits for a fourth. Whether the leases survive is the broker's affair: what
// is said about them afterwards must be true.
func caseCut(e *env) {
	pubs := numbered(8)
	e.publish(pubs[:3]...)
	sub := e.subscribe(e.h.Hold, 12)
	held := e.collect(sub, 3, 0)
	slices.SortFunc(held, func(a, b *queue.Lease) int { return int(a.Headers[headerNumber][0]) - int(b.Headers[headerNumber][0]) })

	ctx, cancel := e.waitCtx(e.h.Hold) // with what Cut takes
	defer cancel()
	var first []*queue.Lease
	waiting := make(chan error, 1)
	go func() {
		var err error
		first, err = receiveSome(ctx, sub, 1)
		waiting <- err
	}()
	e.h.Cut(e)
	repeated := e.publishUntilConfirmed(pubs[3:])
	if err := <-waiting; err != nil {
		e.Fatalf("Receive that waited while the connections were cut: %v", err)
	}
	e.eventually(sub.Healthy)

	// first is held by the new connection, if there is one: nothing that the old leases do may touch it.
	acked := e.settleAfterCut(held)
	got := newTally()
	take := func(leases []*queue.Lease) {
		for _, l := range leases {
			if number := l.Headers[headerNumber]; acked[number] && !repeated[number] {
				e.Errorf("message %s came back after its Ack had succeeded", number)
			}
			e.ack(l)
			acked[l.Headers[headerNumber]] = true
		}
		got.add(leases)
	}
	take(first)
	end := time.Now().Add(e.h.Wait)
	for len(acked) < len(pubs) {
		if time.Now().After(end) {
			e.Fatalf("%v after the cut only messages %v are settled, of %d", e.h.Wait, acked, len(pubs))
		}
		take(e.collect(sub, 1, 0))
	}
	if len(repeated) == 0 {
		e.nothing(sub, e.h.Quiet)
	}
}

// publishUntilConfirmed repeats what was not confirmed, and returns the numbers of those that may be there twice.
func (e *env) publishUntilConfirmed(pubs []queue.Publication) (repeated map[string]bool) {
	e.Helper()
	repeated = map[string]bool{}
	e.eventually(func() error {
		var left []queue.Publication
		var failed error
		for i, r := range e.broker.Publish(e.Context(), e.queue, pubs) {
			if r.Err == nil {
				continue
			}
			if !errors.Is(r.Err, queue.ErrUnavailable) {
				e.Fatalf("Publish after the cut: error %v, want ErrUnavailable or none", r.Err)
			}
			left, failed = append(left, pubs[i]), r.Err
			repeated[pubs[i].Headers[headerNumber]] = true
		}
		pubs = left
		return failed
	})
	return repeated
}

// settleAfterCut acks, retries and releases held, and returns which message is gone.
func (e *env) settleAfterCut(held []*queue.Lease) (acked map[string]bool) {
	e.Helper()
	acked = map[string]bool{}
	for i, settle := range []func(*queue.Lease) error{
		func(l *queue.Lease) error { return l.Ack(e.Context()) },
		func(l *queue.Lease) error { return l.Retry(e.Context(), 0, false) },
		func(l *queue.Lease) error { return l.Release(e.Context()) },
	} {
		e.eventually(func() error {
			err := settle(held[i])
			switch {
			case errors.Is(err, queue.ErrUnavailable):
				return err // it may be repeated
			case err == nil && i == 0:
				acked[held[i].Headers[headerNumber]] = true
			case err != nil && !errors.Is(err, queue.ErrLeaseLost):
				return fmt.Errorf("want success or ErrLeaseLost: %w", err)
			}
			return nil
		})
	}
	return acked
}
