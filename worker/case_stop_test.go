package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// untilDone is a handler that ends with its context.
func untilDone(ctx context.Context, _ *worker.Job) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return nil
	}
}

// The last attempt runs into its timeout: settlement must not use the context that is over.
func TestTimeoutOfTheLastAttemptIsADeadLetter(t *testing.T) {
	t.Parallel()
	onStores(t, testTimeoutOfTheLastAttemptIsADeadLetter)
}

func testTimeoutOfTheLastAttemptIsADeadLetter(t *testing.T, on stores) {
	forms(t, func(t *testing.T, keyed bool) {
		on.inBench(t, jobtest.Config{}, worker.KindConfig{MaxAttempts: 1, Timeout: time.Second, Keyed: &keyed}, untilDone,
			func(t *testing.T, b *jobtest.Bench) {
				id := b.Enqueue(worker.NewJob{Kind: "job"})
				if s := b.Work(); s.Outcome != worker.OutcomeFailed || s.Handle != time.Second {
					t.Errorf("%s after %s", b.Where(id), s.Handle)
				}
				if e := b.DeadOne(); e.Cause != dlq.CauseTimeout || e.Error != context.DeadlineExceeded.Error() {
					t.Errorf("dead of %s: %s", e.Cause, e.Error)
				}
			})
	})
}

// A stop in the middle of the last attempt gives the job back: it has not failed, and its attempt is not spent.
func TestStopInTheLastAttemptGivesTheJobBack(t *testing.T) {
	t.Parallel()
	onStores(t, testStopInTheLastAttemptGivesTheJobBack)
}

func testStopInTheLastAttemptGivesTheJobBack(t *testing.T, on stores) {
	forms(t, func(t *testing.T, keyed bool) {
		cfg := jobtest.Config{Worker: worker.Config{StopGrace: new(2 * time.Second)}}
		on.inBench(t, cfg, worker.KindConfig{MaxAttempts: 1, Timeout: 5 * time.Minute, Keyed: &keyed}, untilDone,
			func(t *testing.T, b *jobtest.Bench) {
				id := b.Enqueue(worker.NewJob{Kind: "job"})
				b.Advance(time.Second)
				start := time.Now()
				b.Restart()
				if took := time.Since(start); took != 2*time.Second {
					t.Errorf("the stop took %s, the grace is 2s", took)
				}
				all := b.Settlements(id)
				if len(all) != 1 || all[0].Outcome != worker.OutcomeInterrupted || all[0].Settlement != worker.SettlementRelease {
					t.Fatal(b.Where(id))
				}
				if s := b.Work(); s.Outcome != worker.OutcomeSucceeded || s.Job.Attempt != 1 {
					t.Errorf("after the restart: attempt %d: %s", s.Job.Attempt, b.Where(id))
				}
				if len(b.Dead()) > 0 {
					t.Error("dead although it only was interrupted")
				}
			})
	})
}

// Deployed ten times during one job: still not failed, not lost, and no hot loop.
func TestManyStopsSpendNoAttempt(t *testing.T) { onStores(t, testManyStopsSpendNoAttempt) }

func testManyStopsSpendNoAttempt(t *testing.T, on stores) {
	forms(t, func(t *testing.T, keyed bool) {
		cfg := jobtest.Config{Worker: worker.Config{StopGrace: new(time.Second)}}
		on.inBench(t, cfg, worker.KindConfig{MaxAttempts: 2, Timeout: 5 * time.Minute, Keyed: &keyed}, untilDone,
			func(t *testing.T, b *jobtest.Bench) {
				id := b.Enqueue(worker.NewJob{Kind: "job"})
				for range 10 {
					b.Advance(time.Second)
					b.Restart()
				}
				b.Drain()
				all := b.Settlements(id)
				if last := all[len(all)-1]; last.Outcome != worker.OutcomeSucceeded || last.Job.Attempt != 1 || len(all) != 11 {
					t.Errorf("%d settlements, attempt %d: %s", len(all), last.Job.Attempt, b.Where(id))
				}
			})
	})
}

// A worker that is stopped before it could begin has nothing to complain of.
func TestStopBeforeTheStartIsClean(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := memoryRig(t)
		registry := worker.NewRegistry()
		work(registry, "job", worker.KindConfig{}, fails)
		w, err := worker.New(worker.Config{Broker: r.broker, Registry: registry, Store: r.claims, DeadLetters: r.dead})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
		if err := r.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}
