package queuetest

import "github.com/caisson-go/caisson/queue"

func caseDeliveryCount(e *env) {
	e.publish(numbered(1)...)
	sub := e.subscribe(e.h.Hold, 1)
	last := 0
	for i := range 3 {
		l := e.receive(sub, 0)
		switch {
		case !e.h.CountsDeliveries && l.DeliveryCount != 0:
			e.Errorf("DeliveryCount is %d, want 0 as pinned", l.DeliveryCount)
		case !e.h.CountsDeliveries:
		case i == 0 && l.DeliveryCount != 1:
			e.Errorf("DeliveryCount of the first delivery is %d, want 1", l.DeliveryCount)
		case l.DeliveryCount <= last:
			e.Errorf("DeliveryCount went from %d to %d, want it to rise", last, l.DeliveryCount)
		}
		last = l.DeliveryCount
		if err := l.Retry(e.Context(), 0, true); err != nil { // also when no attempt is charged
			e.Fatal(err)
		}
	}
}

// caseAttempts walks one message through everything that may or may not spend an attempt.
func caseAttempts(e *env) {
	e.publish(numbered(1)...)
	sub := e.subscribe(e.h.Hold, 1)
	ctx := e.Context()
	steps := []struct {
		name   string
		want   int // what the delivery before the step shows
		settle func(*queue.Lease) error
	}{
		{"first receive charges", 1, func(l *queue.Lease) error { return l.Retry(ctx, 0, false) }},
		{"a charged retry keeps it", 2, func(l *queue.Lease) error { return l.Retry(ctx, 0, true) }},
		{"an uncharged retry gives it back", 2, func(l *queue.Lease) error { return l.Retry(ctx, e.h.Delay, true) }},
		{"an uncharged retry with a delay gives it back", 2, func(l *queue.Lease) error { return l.Release(ctx) }},
		{"a release gives it back", 2, func(l *queue.Lease) error {
			return l.Settle(ctx, queue.Settlement{Action: queue.ActionRelease})
		}},
		{"a charged release keeps it", 3, func(l *queue.Lease) error { return l.Extend(ctx, e.h.Lease) }},
		{"an expiry keeps it, an extension costs nothing", 4, func(l *queue.Lease) error { return l.Ack(ctx) }},
	}
	for _, s := range steps {
		l := e.receive(sub, max(e.h.Delay, e.h.Lease))
		if l.Attempts != s.want {
			e.Errorf("%s: Attempts is %d, want %d", s.name, l.Attempts, s.want)
		}
		if err := s.settle(l); err != nil {
			e.Fatalf("%s: %v", s.name, err)
		}
	}
}

func caseAttemptsUnknown(e *env) {
	e.publish(numbered(1)...)
	sub := e.subscribe(e.h.Hold, 1)
	for range 2 {
		l := e.receive(sub, 0)
		if l.Attempts != 0 {
			e.Errorf("Attempts is %d, want 0: the broker declares that it does not count them", l.Attempts)
		}
		if err := l.Retry(e.Context(), 0, true); err != nil {
			e.Fatal(err)
		}
	}
}
