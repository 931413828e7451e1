package queuetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errInjected = errors.New("injected")

// TestConformanceWithoutFaults shows that the decorator itself changes nothing.
func TestConformanceWithoutFaults(t *testing.T) {
	for form, h := range map[string]Harness{"plain": memHarness(memFaults{}), "FIFO": fifoHarness(memFaults{})} {
		plain := h.New
		h.New = func(t testing.TB) func() queue.Broker {
			open := plain(t)
			return func() queue.Broker { return NewFaultBroker(open(), nil) }
		}
		t.Run(form, func(t *testing.T) { Run(t, h) })
	}
}

// faulty runs f in virtual time with the in-memory broker behind plan.
func faulty(t *testing.T, plan Plan, f func(*env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := memHarness(memFaults{}).withDefaults()
		s := newMemStore(memFaults{})
		h.New = func(testing.TB) func() queue.Broker {
			return func() queue.Broker { return NewFaultBroker(openMem(s), plan) }
		}
		f(newEnv(t, h))
	})
}

// ready is how many messages can be received, by the real broker's own count.
func (e *env) ready() int64 {
	e.Helper()
	d, err := e.broker.Depth(e.Context(), e.queue)
	if err != nil {
		e.Fatal(err)
	}
	return d.Ready.N
}

func TestPublishFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  Fault
		err    error
		stored int64 // of three messages, the second is struck
	}{
		{"before", Fault{Before: errInjected}, errInjected, 2},
		{"lost confirmation", Fault{After: errInjected}, errInjected, 3},
		{"duplicate", Fault{Duplicate: true}, nil, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			faulty(t, Script(OpPublish, Fault{}, c.fault), func(e *env) {
				results := e.broker.Publish(e.Context(), e.queue, numbered(3))
				for i, want := range []error{nil, c.err, nil} {
					if !errors.Is(results[i].Err, want) {
						e.Errorf("result %d: error %v, want %v", i, results[i].Err, want)
					}
				}
				if got := e.ready(); got != c.stored {
					e.Errorf("%d messages are stored, want %d", got, c.stored)
				}
			})
		})
	}
}

func TestSettleFaults(t *testing.T) {
	faulty(t, Script(OpSettle, Fault{Before: errInjected}, Fault{After: errInjected}), func(e *env) {
		e.publish(numbered(1)...)
		sub := e.subscribe(e.h.Lease, 1)
		l := e.receive(sub, 0)
		e.wantErr("Ack that never reached the broker", l.Ack(e.Context()), errInjected)
		e.wantErr("Ack whose answer was lost", l.Ack(e.Context()), errInjected)
		e.ack(l) // repeated
		e.nothing(sub, 2*e.h.Lease)
	})
	faulty(t, Script(OpSettle, Fault{Before: errInjected}), func(e *env) {
		e.publish(numbered(1)...)
		sub := e.subscribe(e.h.Lease, 1)
		e.wantErr("Ack that never reached the broker", e.receive(sub, 0).Ack(e.Context()), errInjected)
		e.ack(e.receive(sub, e.h.Lease)) // it came back
	})
}

func TestReceiveFaults(t *testing.T) {
	faulty(t, Script(OpReceive, Fault{Before: errInjected}, Fault{After: errInjected}), func(e *env) {
		e.publish(numbered(1)...)
		sub := e.subscribe(e.h.Lease, 1)
		_, err := sub.Receive(e.Context(), 1)
		e.wantErr("Receive that never reached the broker", err, errInjected)
		if got := e.ready(); got != 1 {
			e.Errorf("%d messages are ready, want 1", got)
		}
		start := time.Now()
		_, err = sub.Receive(e.Context(), 1)
		e.wantErr("Receive whose answer was lost", err, errInjected)
		e.ack(e.receive(sub, e.h.Lease))
		e.notBefore("a message whose delivery was lost", start.Add(e.h.Lease))
	})
	faulty(t, Script(OpDeliver, Fault{Before: errInjected}), func(e *env) {
		e.publish(numbered(2)...)
		sub := e.subscribe(e.h.Hold, 2)
		leases, err := sub.Receive(e.Context(), 2)
		if err != nil || len(leases) != 1 {
			e.Fatalf("Receive returned %d leases and error %v, want the one that was not struck", len(leases), err)
		}
		e.ack(leases[0], e.receive(sub, 0))
	})
}

func TestDuplicateDelivery(t *testing.T) {
	faulty(t, Script(OpDeliver, Fault{Duplicate: true}), func(e *env) {
		e.publish(numbered(1)...)
		sub := e.subscribe(e.h.Lease, 1)
		first, second := e.receive(sub, 0), e.receive(sub, 0)
		if first == second || first.ID != second.ID || string(first.Body) != string(second.Body) {
			e.Fatal("the second delivery is not a lease of its own on the same message")
		}
		e.ack(first)
		e.wantErr("Retry after the double's Ack", second.Retry(e.Context(), 0, false), queue.ErrLeaseLost)
		e.nothing(sub, 2*e.h.Lease)
	})
	faulty(t, Script(OpDeliver, Fault{Duplicate: true}), func(e *env) {
		e.publish(numbered(1)...)
		sub := e.subscribe(e.h.Lease, 1)
		e.ack(e.receive(sub, 0), e.receive(sub, 0)) // a second delete is fine
	})
}

func TestExpiredByFault(t *testing.T) {
	for _, op := range []Op{OpDeliver, OpExtend, OpSettle} {
		t.Run(op.String(), func(t *testing.T) {
			faulty(t, Script(op, Fault{Expire: true}), func(e *env) {
				e.publish(numbered(1)...)
				sub := e.subscribe(e.h.Hold, 2)
				l := e.receive(sub, 0)
				if op == OpExtend {
					e.wantErr("Extend", l.Extend(e.Context(), e.h.Hold), queue.ErrLeaseLost)
				}
				e.wantErr("Ack", l.Ack(e.Context()), queue.ErrLeaseLost)
				again := e.receive(sub, 0) // at once, though the lease was long
				if again.Attempts != 2 {
					e.Errorf("Attempts is %d, want 2: an expiry spends the attempt", again.Attempts)
				}
				e.ack(again)
			})
		})
	}
}

func TestDelayFault(t *testing.T) {
	slow := func(p Point) bool { return p.Settlement.Action == queue.ActionAck }
	faulty(t, When(OpSettle, slow, Fault{Delay: time.Second}), func(e *env) {
		e.publish(numbered(1)...)
		sub := e.subscribe(e.h.Hold, 1)
		if start := time.Now(); e.receive(sub, 0).Release(e.Context()) != nil || time.Since(start) != 0 {
			e.Error("a Release was held or failed")
		}
		l := e.receive(sub, 0)
		ctx, cancel := context.WithTimeout(e.Context(), time.Millisecond)
		defer cancel()
		e.wantErr("Ack with too short a context", l.Ack(ctx), context.DeadlineExceeded)
		start := time.Now()
		e.ack(l)
		if got := time.Since(start); got != time.Second {
			e.Errorf("Ack took %v of virtual time, want 1s", got)
		}
	})
}

func TestPlans(t *testing.T) {
	plan := Plans(
		Script(OpPublish, Fault{Before: errInjected}),
		When(OpPublish, func(p Point) bool { return p.Message.Headers[headerNumber] == "2" }, Fault{After: errInjected}),
	)
	faulty(t, plan, func(e *env) {
		for i, want := range []error{errInjected, nil, errInjected} {
			r := e.broker.Publish(e.Context(), e.queue, numbered(3)[i:i+1])[0]
			if !errors.Is(r.Err, want) {
				e.Errorf("message %d: error %v, want %v", i, r.Err, want)
			}
		}
		e.broker.(*FaultBroker).SetPlan(nil)
		e.publish(numbered(3)...)
		if got := e.ready(); got != 5 {
			e.Errorf("%d messages are stored, want 5", got)
		}
	})
}
