package queuetest

import (
	"time"

	"github.com/caisson-go/caisson/queue"
)

func caseAckNeverReappears(e *env) {
	e.publish(numbered(3)...)
	sub := e.subscribe(e.h.Lease, 3)
	e.ack(e.collect(sub, 3, 0)...)
	e.nothing(sub, 2*e.h.Lease+e.h.Quiet)
}

// caseUnsettledReappears also proves that an expired lease frees its slot: the subscription has only one.
func caseUnsettledReappears(e *env) {
	e.publish(numbered(1)...)
	sub := e.subscribe(e.h.Lease, 1)
	first := e.receive(sub, 0)
	again := e.receive(sub, e.h.Lease)
	e.notBefore("an unsettled message", first.Deadline())
	if string(again.Body) != string(first.Body) || again.ID == "" {
		e.Errorf("redelivered body %q with id %q, want body %q", again.Body, again.ID, first.Body)
	}
	e.ack(again)
	e.nothing(sub, e.h.Lease+e.h.Quiet)
}

func caseExtendPostpones(e *env) {
	e.publish(numbered(1)...)
	l := e.receive(e.subscribe(e.h.Lease, 1), 0)
	other := e.subscribe(e.h.Hold, 1)

	start := time.Now()
	if err := l.Extend(e.Context(), 2*e.h.Lease); err != nil {
		e.Fatalf("Extend: %v", err)
	}
	if earliest := start.Add(2 * e.h.Lease); l.Deadline().Before(earliest) {
		e.Errorf("after Extend the deadline is %v too early", earliest.Sub(l.Deadline()))
	}
	again := e.receive(other, 2*e.h.Lease)
	e.notBefore("an extended message", l.Deadline())
	e.wantErr("Extend of a lease that ended", l.Extend(e.Context(), e.h.Lease), queue.ErrLeaseLost)

	// An extended lease is still good for a settlement after the first deadline.
	if err := again.Extend(e.Context(), e.h.Hold); err != nil {
		e.Fatalf("Extend: %v", err)
	}
	e.ack(again)
}

func caseRetryHonoursDelay(e *env) {
	e.publish(numbered(1)...)
	sub := e.subscribe(e.h.Hold, 1)
	l := e.receive(sub, 0)
	start := time.Now()
	if err := l.Retry(e.Context(), e.h.Delay, false); err != nil {
		e.Fatalf("Retry: %v", err)
	}
	again := e.receive(sub, e.h.Delay) // before the lease would have ended: Hold is longer than Wait
	e.notBefore("a retried message", start.Add(e.h.Delay))
	if string(again.Body) != string(l.Body) {
		e.Errorf("retried body is %q, want %q", again.Body, l.Body)
	}
	e.ack(again)
}

func caseRetryWithoutDelay(e *env) {
	e.publish(numbered(1)...)
	sub := e.subscribe(e.h.Hold, 1)
	if err := e.receive(sub, 0).Retry(e.Context(), 0, false); err != nil {
		e.Fatalf("Retry: %v", err)
	}
	e.ack(e.receive(sub, 0))
}

func caseRetryDelayTooLong(e *env) {
	e.publish(numbered(1)...)
	sub := e.subscribe(e.h.Hold, 1)
	l := e.receive(sub, 0)
	e.wantErr("Retry with a delay above MaxRetryDelay", l.Retry(e.Context(), e.h.Want.MaxRetryDelay+time.Second, false), queue.ErrDelayTooLong)
	e.ack(l) // the lease is still held
}

func caseReleaseIsImmediate(e *env) {
	e.publish(numbered(1)...)
	l := e.receive(e.subscribe(e.h.Hold, 1), 0)
	other := e.subscribe(e.h.Hold, 1)
	if err := l.Release(e.Context()); err != nil {
		e.Fatalf("Release: %v", err)
	}
	e.ack(e.receive(other, 0)) // long before the lease would have ended
}

func caseExpiredLeaseIsLost(e *env) {
	e.publish(numbered(1)...)
	l := e.receive(e.subscribe(e.h.Lease, 1), 0)
	other := e.subscribe(e.h.Hold, 1)
	next := e.receive(other, e.h.Lease)
	ctx := e.Context()
	e.wantErr("Ack of an expired lease", l.Ack(ctx), queue.ErrLeaseLost)
	e.wantErr("Retry of an expired lease", l.Retry(ctx, 0, false), queue.ErrLeaseLost)
	e.wantErr("Release of an expired lease", l.Release(ctx), queue.ErrLeaseLost)
	e.wantErr("Extend of an expired lease", l.Extend(ctx, e.h.Lease), queue.ErrLeaseLost)
	e.ack(next) // the new holder's lease is untouched
}

func caseSettledOnce(e *env) {
	ctx := e.Context()
	settle := map[string]func(*queue.Lease) error{
		"Ack":     func(l *queue.Lease) error { return l.Ack(ctx) },
		"Retry":   func(l *queue.Lease) error { return l.Retry(ctx, 0, false) },
		"Release": func(l *queue.Lease) error { return l.Release(ctx) },
		"Extend":  func(l *queue.Lease) error { return l.Extend(ctx, e.h.Lease) },
	}
	for _, first := range []string{"Retry", "Release", "Ack"} {
		e.publish(numbered(1)...)
		sub := e.subscribe(e.h.Hold, 1)
		l := e.receive(sub, 0)
		if err := settle[first](l); err != nil {
			e.Fatalf("%s: %v", first, err)
		}
		for second, call := range settle {
			e.wantErr(second+" after "+first, call(l), queue.ErrSettled)
		}
		if first != "Ack" {
			e.ack(e.receive(sub, 0))
		}
		e.nothing(sub, e.h.Quiet)
	}
}

// caseStaleCallChangesNothing calls the driver past [queue.Lease]'s own check, as a call that was delayed on its way
// would arrive.
func caseStaleCallChangesNothing(e *env) {
	e.publish(numbered(1)...)
	var stale queue.Handle
	e.receive(e.subscribe(e.h.Lease, 1), 0).Decorate(func(h queue.Handle) queue.Handle {
		stale = h
		return h
	})
	other := e.subscribe(e.h.Hold, 1)
	next := e.receive(other, e.h.Lease)
	ctx := e.Context()
	e.wantErr("a late Extend", stale.Extend(ctx, e.h.Lease), queue.ErrLeaseLost)
	for _, action := range []queue.Action{queue.ActionRetry, queue.ActionRelease, queue.ActionAck} {
		e.wantErr("a late "+action.String(), stale.Settle(ctx, queue.Settlement{Action: action}), queue.ErrLeaseLost)
	}
	e.nothing(e.subscribe(e.h.Hold, 1), e.h.Quiet) // nothing was given back
	if err := next.Retry(ctx, 0, false); err != nil {
		e.Fatalf("the new holder's Retry: %v", err)
	}
	e.ack(e.receive(other, 0)) // nothing was removed
}

// caseCeiling asks for more than a lease can last: what is granted ends at the ceiling, and the lease is still good.
func caseCeiling(e *env) {
	e.publish(numbered(1)...)
	l := e.receive(e.subscribe(e.h.Hold, 1), 0)
	most := e.h.Want.MaxLease
	switch {
	case most == 0 && !l.Ceiling.IsZero():
		e.Errorf("Lease.Ceiling is %v, want none: the broker declares no MaxLease", l.Ceiling)
	case most > 0 && l.Ceiling.IsZero():
		e.Fatalf("Lease.Ceiling is not set, yet MaxLease is %v", most)
	case most > 0 && time.Until(l.Ceiling) > most:
		e.Errorf("Lease.Ceiling is %v away, more than MaxLease %v", time.Until(l.Ceiling), most)
	}
	if err := l.Extend(e.Context(), most+2*e.h.Hold); err != nil {
		e.Fatalf("Extend beyond what a lease can last: %v", err)
	}
	if end := l.Deadline(); most > 0 && end.After(l.Ceiling) {
		e.Errorf("the extended lease ends %v after its ceiling", end.Sub(l.Ceiling))
	}
	e.ack(l)
}

// caseCeilingEndsTheLease extends a lease again and again, as a heartbeat does.
func caseCeilingEndsTheLease(e *env) {
	e.publish(numbered(1)...)
	l := e.receive(e.subscribe(e.h.Hold, 1), 0)
	other := e.subscribe(e.h.Hold, 1)
	most := time.Now().Add(e.h.Want.MaxLease)
	for time.Now().Before(most) {
		if err := l.Extend(e.Context(), e.h.Hold); err != nil {
			e.Fatalf("Extend %v before the end: %v", time.Until(most), err)
		}
		time.Sleep(min(time.Until(l.Deadline()), e.h.Hold/3) - time.Millisecond)
		if l.Deadline().Equal(l.Ceiling) {
			break
		}
	}
	again := e.receive(other, time.Until(most))
	e.notBefore("a message whose lease was extended to its ceiling", l.Ceiling)
	e.wantErr("Extend of a lease past its ceiling", l.Extend(e.Context(), e.h.Hold), queue.ErrLeaseLost)
	e.ack(again)
}

func caseLeaseTooLong(e *env) {
	cfg := queue.SubscribeConfig{Lease: e.h.Want.MaxLease + time.Second}
	if sub, err := e.broker.Subscribe(e.Context(), e.queue, cfg); err == nil {
		e.Errorf("Subscribe with lease %v above MaxLease %v was accepted", cfg.Lease, e.h.Want.MaxLease)
		_ = sub.Close()
	}
}
