package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/worker"
)

// What a handler and all that it derived from its context see of its end, whatever ended it, and that the next job of the slot sees nothing of it.
func TestContextsOfOneSlot(t *testing.T) {
	t.Parallel()
	type seen struct {
		own, child, grandchild, after error // causes
		err                           error
	}
	const lease = 4 * time.Second
	for name, c := range map[string]struct {
		want  error
		err   error
		run   func(ctx context.Context)
		claim bool // is lost after 20 s
		lease bool // is lost at its first extension
	}{
		"timeout":    {want: worker.ErrTimeout, err: context.DeadlineExceeded, run: func(ctx context.Context) { <-ctx.Done() }},
		"claim lost": {want: worker.ErrClaimLost, err: context.Canceled, run: func(ctx context.Context) { <-ctx.Done() }, claim: true},
		"lease lost": {want: worker.ErrLeaseLost, err: context.Canceled, run: func(ctx context.Context) { <-ctx.Done() }, lease: true},
		"given up":   {want: worker.ErrTimeout, err: context.DeadlineExceeded, run: func(context.Context) { time.Sleep(3 * time.Minute) }},
		"returned":   {want: context.Canceled, err: context.Canceled, run: func(context.Context) {}},
		"panic":      {want: context.Canceled, err: context.Canceled, run: func(context.Context) { panic("boom") }},
		"goexit":     {want: context.Canceled, err: context.Canceled, run: func(context.Context) { runtime.Goexit() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var first seen
				var look sync.WaitGroup
				var store *thief
				var calls atomic.Int64
				registry := worker.NewRegistry()
				cfg := worker.KindConfig{Timeout: time.Minute, TimeoutGrace: 10 * time.Second, Backoff: every(t, time.Hour), Bulkhead: 1}
				if c.lease {
					cfg.Keyed = new(false)
				}
				work(registry, "k", cfg, func(ctx context.Context, job *worker.Job) error {
					if calls.Add(1) > 1 {
						store.from.Store(0)
						if ctx.Err() != nil || context.Cause(ctx) != nil || worker.JobFrom(ctx) != job {
							t.Errorf("the next job begins with %v, cause %v", ctx.Err(), context.Cause(ctx))
						}
						time.Sleep(30 * time.Second)
						return context.Cause(ctx)
					}
					child, cancel := context.WithTimeout(ctx, time.Hour)
					grandchild, cancelIt := context.WithCancel(context.WithValue(child, seen{}, name))
					look.Add(1)
					context.AfterFunc(ctx, func() { first.after = context.Cause(ctx); look.Done() })
					look.Go(func() {
						defer cancel()
						defer cancelIt()
						<-grandchild.Done()
						first.own, first.child, first.grandchild = context.Cause(ctx), context.Cause(child), context.Cause(grandchild)
						first.err = ctx.Err()
					})
					c.run(ctx)
					return ctx.Err()
				})
				b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
				store = &thief{Store: b.claims}
				if c.claim {
					store.from.Store(time.Now().Add(20 * time.Second).UnixNano())
				}
				var plan queuetest.Plan
				if c.lease {
					plan = queuetest.Script(queuetest.OpExtend, queuetest.Fault{Expire: true})
				}
				b.start(worker.Config{Registry: registry, Concurrency: 1, Store: store, Lease: lease, Broker: queuetest.NewFaultBroker(b.broker, plan)})
				for i := range 3 {
					b.enqueue(worker.NewJob{Kind: "k", ID: fmt.Sprint(i)})
				}
				b.after(10 * time.Minute)
				look.Wait()
				want := seen{c.want, c.want, c.want, c.want, c.err}
				if first != want {
					t.Errorf("seen %+v, want %+v", first, want)
				}
				if n := calls.Load(); n < 3 {
					t.Errorf("%d calls", n)
				}
				b.after(2 * time.Hour)
				b.accounts()
				if err := b.stop(); err != nil {
					t.Error(err)
				}
				if err := b.broker.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A handler that is given up and succeeds leaves its result under the key, as it was when it returned.
func TestLateResultIsKept(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	cfg := worker.KindConfig{Timeout: time.Second, TimeoutGrace: time.Second, Backoff: every(t, time.Minute)}
	work(registry, "k", cfg, func(_ context.Context, job *worker.Job) error {
		for i := range 10 {
			job.SetResult(fmt.Appendf(nil, "second %d", i))
			time.Sleep(time.Second)
		}
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		id := b.enqueue(worker.NewJob{Kind: "k"})
		b.after(10 * time.Minute)
		s := b.settled(id)
		if len(s) != 2 || s[0].Outcome != worker.OutcomeFailed || s[1].Outcome != worker.OutcomeDuplicate || s[1].Result == nil || string(s[1].Result.Data) != "second 9" {
			t.Errorf("settled %+v", s)
		}
		b.accounts()
	})
}

// A transaction that is asked for late, by a handler that was given up or has returned, is refused.
func TestNoTransactionAfterTheHandler(t *testing.T) {
	t.Parallel()
	late := make(chan error, 1)
	registry := worker.NewRegistry()
	cfg := worker.KindConfig{Timeout: time.Second, TimeoutGrace: time.Second, MaxAttempts: 1}
	work(registry, "k", cfg, func(ctx context.Context, _ *worker.Job) error {
		time.Sleep(time.Minute)
		_, err := idempotency.TxFrom(ctx)
		late <- err
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "k"})
		b.after(time.Hour)
		if err := <-late; !errors.Is(err, idempotency.ErrNoTx) {
			t.Error(err)
		}
		b.accounts()
	})
}

// An observer that ends its goroutine as a handler starts costs the attempt, and neither the slot nor the stop.
func TestGoexitInAnObserverCostsOnlyTheAttempt(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	cfg := worker.KindConfig{MaxAttempts: 1, Bulkhead: 1, Waiting: new(0)}
	work(registry, "k", cfg, func(context.Context, *worker.Job) error { return nil })
	exits := observerFunc(func(e worker.Event) {
		if s, ok := e.(*worker.Started); ok && s.Job.ID == "bad" {
			runtime.Goexit()
		}
	})
	inBubbleObservedBy(t, worker.Config{Registry: registry, Concurrency: 1}, exits, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "k", ID: "bad"})
		b.enqueue(worker.NewJob{Kind: "k", ID: "good"})
		b.after(time.Hour)
		b.accounts()
		if s := b.settled("good"); len(s) == 0 || s[len(s)-1].Outcome != worker.OutcomeSucceeded {
			t.Errorf("settled %+v", s)
		}
	})
}
