package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// steps calls at before each call that a job makes to stores and broker, with the number of the call.
type steps struct {
	idempotency.Store
	n  atomic.Int64
	at func(n int64, name string)
}

func (s *steps) step(name string) { s.at(s.n.Add(1), name) }

func (s *steps) Claim(ctx context.Context, reqs []idempotency.Request) []idempotency.Claim {
	s.step("claim")
	return s.Store.Claim(ctx, reqs)
}

func (s *steps) Complete(ctx context.Context, comps []idempotency.Completion) []error {
	s.step("complete")
	return s.Store.Complete(ctx, comps)
}

func (s *steps) Abandon(ctx context.Context, abs []idempotency.Abandonment) []error {
	s.step("abandon")
	return s.Store.Abandon(ctx, abs)
}

func (s *steps) Fail(ctx context.Context, fails []idempotency.Failure) []error {
	s.step("fail")
	return s.Store.Fail(ctx, fails)
}

// stepBroker is a broker whose receives and settlements are steps.
type stepBroker struct {
	queue.Broker
	*steps
}

func (b stepBroker) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	b.step("subscribe")
	sub, err := b.Broker.Subscribe(ctx, name, cfg)
	return stepSubscription{sub, b.steps}, err
}

type stepSubscription struct {
	queue.Subscription
	*steps
}

func (s stepSubscription) Receive(ctx context.Context, n int) ([]*queue.Lease, error) {
	leases, err := s.Subscription.Receive(ctx, n)
	if len(leases) > 0 {
		s.step("received")
	}
	for _, l := range leases {
		l.Decorate(func(h queue.Handle) queue.Handle { return stepHandle{h, s.steps} })
	}
	return leases, err
}

type stepHandle struct {
	queue.Handle
	*steps
}

func (h stepHandle) Settle(ctx context.Context, s queue.Settlement) error {
	h.step("settle")
	return h.Handle.Settle(ctx, s)
}

// A stop that comes in the middle of any step loses nothing, runs nothing twice, and spends no attempt: every job goes on where it was.
func TestStopAtEveryStep(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		for stopAt := int64(1); ; stopAt++ {
			name := ""
			t.Run(fmt.Sprintf("step %d", stopAt), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { name = stopAtStep(t, keyed, stopAt) })
			})
			if name == "" || t.Failed() {
				if stopAt < 12 {
					t.Errorf("only %d steps: the test does not see them", stopAt)
				}
				return // that many steps there are not
			}
		}
	})
}

// stopAtStep runs three jobs, one of which fails at first and one always, stops in step n, and lets another worker go on. It returns the step's name.
func stopAtStep(t *testing.T, keyed bool, n int64) (name string) {
	attempts := make(map[string][]int)
	registry := worker.NewRegistry()
	cfg := worker.KindConfig{Keyed: &keyed, MaxAttempts: 2, Backoff: every(t, time.Second)}
	stopped := false
	work(registry, "k", cfg, func(_ context.Context, job *worker.Job) error {
		if stopped {
			t.Errorf("stop in %q: job %s was started after it", name, job.ID)
		}
		attempts[job.ID] = append(attempts[job.ID], job.Attempt)
		if job.ID == "dead" || job.ID == "flaky" && job.Attempt == 1 {
			return errors.New("no")
		}
		return nil
	})
	b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
	s := &steps{Store: b.claims}
	s.at = func(at int64, what string) {
		if at == n {
			name, stopped = what, true
			b.stopRun()
		}
	}
	for _, id := range []string{"good", "flaky", "dead"} {
		b.enqueue(worker.NewJob{Kind: "k", ID: id})
	}
	b.start(worker.Config{Registry: registry, Concurrency: 1, Store: s, Broker: stepBroker{b.broker, s}})
	b.after(10 * time.Second)
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	stopped = false
	b.start(worker.Config{Registry: registry, Concurrency: 1})
	b.after(10 * time.Second)
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	for id, want := range map[string]string{"good": "[1]", "flaky": "[1 2]", "dead": "[1 2]"} {
		if got := fmt.Sprint(attempts[id]); got != want {
			t.Errorf("stop in %q: job %s ran as attempts %s, want %s", name, id, got, want)
		}
	}
	if e, err := b.dead.Get(b.ctx, dlq.EntryID("dead", 0)); err != nil || e.AttemptCount != 2 || e.Cause != dlq.CauseExhausted {
		t.Errorf("stop in %q: dead letter %+v, error %v", name, e, err)
	}
	depth, err := b.broker.Depth(b.ctx, worker.DefaultQueue)
	if err != nil || depth.Ready.N+depth.Delayed.N+depth.InFlight.N != 0 {
		t.Errorf("stop in %q: depth %+v, error %v", name, depth, err)
	}
	if err := b.broker.Close(); err != nil {
		t.Error(err)
	}
	return name
}
