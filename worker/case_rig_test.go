package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// The files case_*_test.go are faults that users of other queue workers met in production, each as a test. They run on [jobtest.Bench].

var errBoom = errors.New("boom")

// work registers a raw kind whose handler gets the job.
func work(r *worker.Registry, name string, cfg worker.KindConfig, fn func(ctx context.Context, job *worker.Job) error) {
	worker.Handle(r, worker.Kind[[]byte]{Name: name, Config: cfg}, func(ctx context.Context, _ []byte) error {
		return fn(ctx, worker.JobFrom(ctx))
	})
}

// inBench runs do on a bench with one kind, "job", in virtual time.
func inBench(t *testing.T, cfg jobtest.Config, kind worker.KindConfig, fn func(ctx context.Context, job *worker.Job) error, do func(t *testing.T, b *jobtest.Bench)) {
	t.Helper()
	stores(memory).inBench(t, cfg, kind, fn, do)
}

func fails(context.Context, *worker.Job) error { return errBoom }

// every returns a backoff of exactly d.
func every(t *testing.T, d time.Duration) schedule.Backoff {
	t.Helper()
	p, err := schedule.Constant(d, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// forms runs do with claims and without.
func forms(t *testing.T, do func(t *testing.T, keyed bool)) {
	t.Helper()
	t.Run("idempotency key", func(t *testing.T) { do(t, true) })
	t.Run("idempotency none", func(t *testing.T) { do(t, false) })
}

// calledOnce checks that a job was called once, as attempt 1, and ended well.
func calledOnce(t *testing.T, b *jobtest.Bench, id string) {
	t.Helper()
	all := b.Settlements(id)
	last := all[len(all)-1]
	if b.Attempts(id) != 1 || last.Outcome != worker.OutcomeSucceeded || last.Job.Attempt != 1 || len(b.Dead()) > 0 {
		t.Errorf("%d calls, the last as attempt %d, %d dead: %s", b.Attempts(id), last.Job.Attempt, len(b.Dead()), b.Where(id))
	}
}
