package worker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/limiter"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// MaxAttempts counts the first attempt, in every keyed of counting, and the last word is the handler's own error.
func TestExactlyMaxAttempts(t *testing.T) { onStores(t, testExactlyMaxAttempts) }

func testExactlyMaxAttempts(t *testing.T, on stores) {
	for _, attempts := range []int{1, 3} {
		forms(t, func(t *testing.T, keyed bool) {
			on.inBench(t, jobtest.Config{}, worker.KindConfig{MaxAttempts: attempts, Keyed: &keyed},
				func(_ context.Context, job *worker.Job) error {
					return fmt.Errorf("the handler's error in attempt %d of %d", job.Attempt, job.MaxAttempts)
				}, func(t *testing.T, b *jobtest.Bench) {
					id := b.Enqueue(worker.NewJob{Kind: "job"})
					b.Drain()
					e := b.DeadOne()
					want := fmt.Sprintf("the handler's error in attempt %d of %d", attempts, attempts)
					if b.Attempts(id) != attempts || e.AttemptCount != attempts || e.Error != want || e.Cause != dlq.CauseExhausted {
						t.Errorf("max attempts %d: %d calls; dead of %s after %d: %s", attempts, b.Attempts(id), e.Cause, e.AttemptCount, e.Error)
					}
					if n := len(b.Settlements(id)); n != attempts {
						t.Errorf("%d deliveries for %d attempts", n, attempts)
					}
				})
		})
	}
}

// While the store of claims refuses, jobs with a key are not called and nothing dies for it; leasing pauses, and resumes by itself.
func TestDeadClaimStorePausesKeyedJobs(t *testing.T) {
	t.Parallel()
	watch := &pauses{}
	cfg := jobtest.Config{Worker: worker.Config{Observers: []worker.Observer{watch}, Concurrency: 5}}
	inBench(t, cfg, worker.KindConfig{MaxAttempts: 3}, fails, func(t *testing.T, b *jobtest.Bench) {
		var ids []string
		for range 20 {
			ids = append(ids, b.Enqueue(worker.NewJob{Kind: "job"}))
		}
		b.Break(jobtest.PartClaims)
		b.Advance(10 * time.Minute)
		for _, id := range ids {
			if b.Attempts(id) != 0 {
				t.Fatalf("called without a claim: %s", b.Where(id))
			}
		}
		if len(b.Dead()) > 0 || watch.paused.Load() == 0 || b.Worker().Ready() == nil {
			t.Fatalf("%d dead, paused %d times, ready: %v", len(b.Dead()), watch.paused.Load(), b.Worker().Ready())
		}
		if n := len(b.Settlements(ids[0])); n > 2 || watch.settled.Load() > 10 {
			t.Errorf("%d deliveries of one job, %d of all, in 10 minutes without a store: leasing has not paused", n, watch.settled.Load())
		}
		b.Repair(jobtest.PartClaims)
		b.Advance(10 * time.Second)
		if watch.resumed.Load() != watch.paused.Load() || b.Worker().Ready() != nil {
			t.Errorf("paused %d times, resumed %d times, ready: %v", watch.paused.Load(), watch.resumed.Load(), b.Worker().Ready())
		}
		b.Drain()
		for _, e := range b.Dead() {
			if e.AttemptCount != 3 || b.Attempts(e.Job) != 3 || e.Error != errBoom.Error() {
				t.Errorf("job %s: %d attempts, %d calls: %s", e.Job, e.AttemptCount, b.Attempts(e.Job), e.Error)
			}
		}
		if n := len(b.Dead()); n != 20 {
			t.Errorf("%d dead of 20", n)
		}
	})
}

// Kinds without a key need no store: they are bounded by their own count.
func TestDeadClaimStoreLeavesUnkeyedKindsAlone(t *testing.T) {
	t.Parallel()
	inBench(t, jobtest.Config{}, worker.KindConfig{MaxAttempts: 3, Keyed: new(false)}, fails, func(t *testing.T, b *jobtest.Bench) {
		b.Break(jobtest.PartClaims)
		id := b.Enqueue(worker.NewJob{Kind: "job"})
		b.Drain()
		if e := b.DeadOne(); b.Attempts(id) != 3 || e.AttemptCount != 3 {
			t.Errorf("%d calls, %d attempts", b.Attempts(id), e.AttemptCount)
		}
	})
}

// A job whose destination may not be called waits, and spends no attempt on it: held while an operator says so, and put back by a breaker.
func TestForcedOpenBreakerSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		kind := worker.KindConfig{MaxAttempts: 3, Destination: "d.test", Keyed: &keyed}
		inBench(t, jobtest.Config{}, kind, func(context.Context, *worker.Job) error { return nil }, func(t *testing.T, b *jobtest.Bench) {
			b.Force("d.test", breaker.OverrideOpen)
			id := b.Enqueue(worker.NewJob{Kind: "job"})
			b.Advance(20 * time.Second)
			if s := b.Settlements(id); len(s) == 0 || s[0].Outcome != worker.OutcomeDeferred || s[0].Reason != "forced_open" {
				t.Errorf("while forced open: %s", b.Where(id))
			}
			b.Force("d.test", breaker.OverrideNone)
			b.Advance(5 * time.Second)
			b.Drain()
			calledOnce(t, b, id)
		})
	})
}

func TestRateLimitSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		cfg := jobtest.Config{Worker: worker.Config{Destinations: pools.DestinationsConfig{
			Default: pools.DestinationConfig{Rate: limiter.Config{Rate: new(1.0 / 60)}},
		}}}
		kind := worker.KindConfig{MaxAttempts: 3, Destination: "d.test", Keyed: &keyed}
		inBench(t, cfg, kind, func(context.Context, *worker.Job) error { return nil }, func(t *testing.T, b *jobtest.Bench) {
			first, second := b.Enqueue(worker.NewJob{Kind: "job"}), b.Enqueue(worker.NewJob{Kind: "job"})
			b.Drain()
			calledOnce(t, b, first)
			calledOnce(t, b, second)
			if apart := b.AttemptTimes(first)[0].Sub(b.AttemptTimes(second)[0]).Abs(); apart < time.Minute {
				t.Errorf("two calls within %s at a limit of one a minute", apart)
			}
			if one, other := b.Settlements(first)[0].Reason, b.Settlements(second)[0].Reason; one+other != "rate_limited" {
				t.Errorf("deferred for %q and %q, want one of them for the rate limit", one, other)
			}
		})
	})
}

// A crash is an attempt: a job that kills its worker each time is dead after its maximum, not looping for ever.
func TestJobThatKillsItsWorkerDies(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		synctest.Test(t, func(t *testing.T) {
			r := worker.NewRegistry()
			work(r, "job", worker.KindConfig{MaxAttempts: 3, Keyed: &keyed}, untilDone)
			b := jobtest.New(t, r, jobtest.Config{Worker: worker.Config{Lease: 3 * time.Second}})
			id := b.Enqueue(worker.NewJob{Kind: "job"})
			for range 3 {
				b.Advance(5 * time.Second)
				b.Kill()
			}
			b.Drain()
			if e := b.DeadOne(); e.Cause != dlq.CauseWorkerLost || e.AttemptCount != 3 || b.Attempts(id) != 3 {
				t.Errorf("dead of %s after %d attempts, %d calls", e.Cause, e.AttemptCount, b.Attempts(id))
			}
		})
	})
}
