package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// A handler that hangs and ignores its context must not keep its job: another worker runs the second attempt, then the job is dead of its
// timeout, and the handlers that still hang are named.
func TestHungHandlerLosesItsJob(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		let := make(chan struct{})
		kind := worker.KindConfig{
			Timeout: 2 * time.Second, TimeoutGrace: time.Second, MaxAttempts: 2, Backoff: every(t, time.Second), Keyed: &keyed,
		}
		cfg := jobtest.Config{Worker: worker.Config{Lease: 3 * time.Second, Concurrency: 1}}
		inBench(t, cfg, kind, func(context.Context, *worker.Job) error {
			<-let
			return errBoom
		}, func(t *testing.T, b *jobtest.Bench) {
			let = make(chan struct{}) // of the bubble
			b.StartWorker()
			id := b.Enqueue(worker.NewJob{Kind: "job"})
			begin := time.Now()
			b.Advance(15 * time.Second)

			e := b.DeadOne()
			if e.Cause != dlq.CauseTimeout || e.AttemptCount != 2 || b.Attempts(id) != 2 {
				t.Fatalf("dead of %s after %d attempts, handler started %d times: %s", e.Cause, e.AttemptCount, b.Attempts(id), b.Where(id))
			}
			// Timeout and grace, the backoff, and at most one lease on top.
			if second := b.AttemptTimes(id)[1].Sub(begin); second > (3+1+3)*time.Second {
				t.Errorf("the second attempt began after %s", second)
			}
			if got := b.Worker().Snapshot().Abandoned; got != 1 {
				t.Errorf("%d handlers of the second worker are counted as abandoned, want 1", got)
			}
			if wrote := dead(t, b, e.ID); !strings.Contains(wrote, "timed out") {
				t.Errorf("the dead letter says %q", wrote)
			}
			close(let)
			b.Advance(time.Second)
			if got := b.Worker().Snapshot(); got.Abandoned != 0 || got.Queues[0].InUse != 0 {
				t.Errorf("after the handler returned: %d abandoned, %d slots in use", got.Abandoned, got.Queues[0].InUse)
			}
		})
	})
}

func dead(t *testing.T, b *jobtest.Bench, id string) string {
	t.Helper()
	e, err := b.DeadLetters().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e.Error
}

// A job that is finished while its message is already visible again stays done: what follows is told so and does not run.
func TestJobFinishedWhileItsLeaseIsLostStaysDone(t *testing.T) {
	t.Parallel()
	inBench(t, jobtest.Config{}, worker.KindConfig{}, func(context.Context, *worker.Job) error {
		time.Sleep(5 * time.Second)
		return nil
	}, func(t *testing.T, b *jobtest.Bench) {
		b.StartWorker()
		id := b.Enqueue(worker.NewJob{Kind: "job"})
		b.Advance(time.Second)
		b.ExpireLease(id)
		b.Drain()
		if n := b.Attempts(id); n != 1 {
			t.Errorf("the handler ran %d times: %s", n, b.Where(id))
		}
		record, err := b.Claims().Get(t.Context(), idempotency.Key{Scope: "job", Value: id})
		if err != nil || record.State != idempotency.StatusCompleted || record.Attempt != 1 {
			t.Errorf("record %+v, error %v", record, err)
		}
	})
}

// A worker that lost its network acts on what it knew before: it must not touch the claim of the one that took over.
func TestStaleWorkerDoesNotTouchTheNewClaim(t *testing.T) {
	t.Parallel()
	var causes []error
	kind := worker.KindConfig{Timeout: time.Minute}
	cfg := jobtest.Config{Worker: worker.Config{Lease: 3 * time.Second}}
	inBench(t, cfg, kind, func(ctx context.Context, job *worker.Job) error {
		if job.Attempt == 1 {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return errBoom
		}
		job.SetResult([]byte("second"))
		select {
		case <-time.After(10 * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func(t *testing.T, b *jobtest.Bench) {
		id := b.Enqueue(worker.NewJob{Kind: "job"})
		b.Advance(time.Second)
		b.StartWorker()
		b.Isolate()
		b.Advance(6 * time.Second) // its lease and claim run out, the other takes over
		if n := b.Attempts(id); n != 2 {
			t.Fatalf("%d attempts after the first worker was cut off: %s", n, b.Where(id))
		}
		b.Rejoin()
		b.Drain()
		if len(causes) != 1 || !errors.Is(causes[0], worker.ErrClaimLost) {
			t.Errorf("the first handler's context ended with %v, want %v", causes, worker.ErrClaimLost)
		}
		record, err := b.Claims().Get(t.Context(), idempotency.Key{Scope: "job", Value: id})
		if err != nil || record.State != idempotency.StatusCompleted || record.Attempt != 2 || string(record.Result.Data) != "second" {
			t.Errorf("record %+v, error %v", record, err)
		}
		if n := len(b.Dead()); n > 0 || b.Attempts(id) != 2 {
			t.Errorf("%d dead letters, %d attempts: %s", n, b.Attempts(id), b.Where(id))
		}
	})
}

// A job whose worker dies at any moment is ready again within one lease, although no lease record of its own can be found.
func TestOrphanIsReadyWithinOneLease(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		cfg := jobtest.Config{Worker: worker.Config{Lease: 3 * time.Second}}
		inBench(t, cfg, worker.KindConfig{Keyed: &keyed}, func(ctx context.Context, job *worker.Job) error {
			if job.Attempt == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, func(t *testing.T, b *jobtest.Bench) {
			id := b.Enqueue(worker.NewJob{Kind: "job"})
			b.Advance(0)
			b.Kill()
			start := time.Now()
			if s := b.Work(); s.Outcome != worker.OutcomeSucceeded || s.Job.Attempt != 2 {
				t.Error(b.Where(id))
			}
			if waited := time.Since(start); waited > 3100*time.Millisecond {
				t.Errorf("ready after %s, the lease is 3s", waited)
			}
		})
	})
}
