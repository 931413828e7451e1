package worker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

func record(t *testing.T, b *jobtest.Bench, kind, key string) idempotency.Record {
	t.Helper()
	r, err := b.Claims().Get(t.Context(), idempotency.Key{Scope: kind, Value: key})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A worker that dies right after the claim leaves the key claimed: the next one takes over within one lease, not after the key's
// retention, and the old owner can write nothing any more.
func TestKeyOfADeadWorkerIsTakenOver(t *testing.T) { onStores(t, testKeyOfADeadWorkerIsTakenOver) }

func testKeyOfADeadWorkerIsTakenOver(t *testing.T, on stores) {
	cfg := jobtest.Config{Worker: worker.Config{Lease: 3 * time.Second}}
	on.inBench(t, cfg, worker.KindConfig{}, func(ctx context.Context, job *worker.Job) error {
		if job.Attempt == 1 {
			return untilDone(ctx, job)
		}
		return nil
	}, func(t *testing.T, b *jobtest.Bench) {
		id := b.Enqueue(worker.NewJob{Kind: "job", Key: "k"})
		b.Advance(0)
		dying := record(t, b, "job", "k")
		if dying.State != idempotency.StatusAcquired {
			t.Fatalf("the key is %s, not claimed", dying.State)
		}
		b.Kill()
		start := time.Now()
		b.Drain()
		if took := time.Since(start); took > 4*time.Second || b.Attempts(id) != 2 {
			t.Errorf("%d attempts, done after %s, the lease is 3s: %s", b.Attempts(id), took, b.Where(id))
		}
		last := b.Settlements(id)[0].Job.Token
		if last <= dying.Token {
			t.Fatalf("token %d follows token %d", last, dying.Token)
		}
		old := idempotency.Handle{Key: idempotency.Key{Scope: "job", Value: "k"}, Job: id, Token: dying.Token}
		result := idempotency.NewResult([]byte("of the dead"))
		if err := b.Claims().Complete(t.Context(), []idempotency.Completion{{Handle: old, Result: result}})[0]; !errors.Is(err, idempotency.ErrClaimLost) {
			t.Errorf("the old owner's completion: %v", err)
		}
		if r := record(t, b, "job", "k"); r.State != idempotency.StatusCompleted || r.Token != last || len(r.Result.Data) > 0 {
			t.Errorf("record %+v", r)
		}
	})
}

// Only success is kept as a result: a failure is never served to a later attempt, and what is served is marked.
func TestOnlySuccessIsServedAgain(t *testing.T) { onStores(t, testOnlySuccessIsServedAgain) }

func testOnlySuccessIsServedAgain(t *testing.T, on stores) {
	for name, first := range map[string]func() error{
		"error": func() error { return errBoom },
		"panic": func() error { panic("at the disco") },
	} {
		t.Run(name, func(t *testing.T) {
			on.inBench(t, jobtest.Config{}, worker.KindConfig{}, func(_ context.Context, job *worker.Job) error {
				if job.Attempt == 1 {
					job.SetResult([]byte("half done"))
					return first()
				}
				job.SetResult([]byte("done"))
				return nil
			}, func(t *testing.T, b *jobtest.Bench) {
				id := b.Enqueue(worker.NewJob{Kind: "job"})
				if s := b.Work(); s.Outcome != worker.OutcomeFailed {
					t.Fatal(b.Where(id))
				}
				if s := b.Work(); s.Outcome != worker.OutcomeSucceeded || b.Attempts(id) != 2 {
					t.Fatalf("the second attempt did not run: %s", b.Where(id))
				}
				b.Duplicate(id)
				if s := b.Work(); s.Outcome != worker.OutcomeDuplicate || string(s.Result.Data) != "done" || b.Attempts(id) != 2 {
					t.Errorf("a duplicate was told %q: %s", s.Result.Data, b.Where(id))
				}
			})
		})
	}
}

// A rejected run is closed, not completed: its key is free for another job.
func TestRejectionIsNotServedAgain(t *testing.T) { onStores(t, testRejectionIsNotServedAgain) }

func testRejectionIsNotServedAgain(t *testing.T, on stores) {
	reject := true
	on.inBench(t, jobtest.Config{}, worker.KindConfig{}, func(context.Context, *worker.Job) error {
		if reject {
			return worker.Cancel(errBoom)
		}
		return nil
	}, func(t *testing.T, b *jobtest.Bench) {
		b.Enqueue(worker.NewJob{Kind: "job", Key: "k"})
		b.Drain()
		if e := b.DeadOne(); e.Cause != dlq.CauseRejected {
			t.Fatalf("dead of %s", e.Cause)
		}
		reject = false
		second := b.Enqueue(worker.NewJob{Kind: "job", Key: "k"})
		if s := b.Work(); s.Outcome != worker.OutcomeSucceeded {
			t.Errorf("the second job of the key: %s", b.Where(second))
		}
	})
}

// The same key with another payload is a conflict while the first is done, running, or between its attempts.
func TestSameKeyWithAnotherPayloadIsAConflict(t *testing.T) {
	t.Parallel()
	onStores(t, testSameKeyWithAnotherPayloadIsAConflict)
}

func testSameKeyWithAnotherPayloadIsAConflict(t *testing.T, on stores) {
	for name, c := range map[string]struct {
		first   error         // of the first job's attempts
		advance time.Duration // before the second is enqueued
	}{
		"done":             {nil, time.Minute},
		"running":          {nil, time.Second},
		"between attempts": {errBoom, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { testConflict(t, on, c.first, c.advance) })
	}
}

func testConflict(t *testing.T, on stores, first error, advance time.Duration) {
	var mu sync.Mutex
	var ran []string
	handler := func(_ context.Context, job *worker.Job) error {
		mu.Lock()
		ran = append(ran, job.Kind+string(job.Payload))
		mu.Unlock()
		time.Sleep(10 * time.Second)
		job.SetResult([]byte("charged"))
		if job.Kind == "charge" && job.Attempt == 1 {
			return first
		}
		return nil
	}
	register := func(r *worker.Registry) {
		work(r, "charge", worker.KindConfig{Backoff: every(t, time.Minute)}, handler)
		work(r, "refund", worker.KindConfig{}, handler)
	}
	on.inBubble(t, jobtest.Config{}, register, func(t *testing.T, b *jobtest.Bench) {
		b.Enqueue(worker.NewJob{Kind: "charge", Key: "ord-7", Payload: []byte(`{"amt":10}`)})
		b.Advance(advance)
		other := b.Enqueue(worker.NewJob{Kind: "charge", Key: "ord-7", Payload: []byte(`{"amt":99}`)})
		free := b.Enqueue(worker.NewJob{Kind: "refund", Key: "ord-7", Payload: []byte(`{"amt":99}`)})
		b.Drain()

		e := b.DeadOne()
		if e.Job != other || e.Cause != dlq.CauseMismatch || !strings.Contains(e.Error, "ord-7") || b.Attempts(other) != 0 {
			t.Errorf("dead is job %s of %s: %s; the other payload ran %d times", e.Job, e.Cause, e.Error, b.Attempts(other))
		}
		if b.Attempts(free) != 1 {
			t.Errorf("the same key of another kind: %s", b.Where(free))
		}
		if got := record(t, b, "charge", "ord-7"); got.State != idempotency.StatusCompleted || string(got.Result.Data) != "charged" {
			t.Errorf("the first job's record: %+v", got)
		}
		for _, what := range ran {
			if what == `charge{"amt":99}` {
				t.Errorf("ran %q", ran)
			}
		}
	})
}

// A run that is given up frees its own row: the key is taken by the next job, whatever its payload. Payloads are compared as bytes:
// another order of keys is another payload.
func TestKeyOfADeadJobIsFree(t *testing.T) { onStores(t, testKeyOfADeadJobIsFree) }

func testKeyOfADeadJobIsFree(t *testing.T, on stores) {
	on.inBench(t, jobtest.Config{}, worker.KindConfig{MaxAttempts: 1}, func(_ context.Context, job *worker.Job) error {
		if string(job.Payload) == `{"amt":10,"cur":"EUR"}` {
			return errBoom
		}
		return nil
	}, func(t *testing.T, b *jobtest.Bench) {
		b.Enqueue(worker.NewJob{Kind: "job", Key: "k", Payload: []byte(`{"amt":10,"cur":"EUR"}`)})
		b.Drain()
		b.Enqueue(worker.NewJob{Kind: "job", Key: "k", Payload: []byte(`{"cur":"EUR","amt":10}`)})
		if s := b.Work(); s.Outcome != worker.OutcomeSucceeded {
			t.Errorf("after the first was dead: %s", b.Where(s.Job.ID))
		}
		b.Enqueue(worker.NewJob{Kind: "job", Key: "k", Payload: []byte(`{"amt":10,"cur":"EUR"}`)})
		if s := b.Work(); s.Outcome != worker.OutcomeRejected || s.Cause != dlq.CauseMismatch {
			t.Errorf("another order of keys after the second was done: %s", b.Where(s.Job.ID))
		}
	})
}

// A result that is too large to keep does not fail the job: what is kept, and told to duplicates, is its size and hash, with a warning.
func TestResultTooLargeToKeep(t *testing.T) { onStores(t, testResultTooLargeToKeep) }

func testResultTooLargeToKeep(t *testing.T, on stores) {
	large := bytes.Repeat([]byte("x"), 10<<20)
	var log bytes.Buffer
	cfg := jobtest.Config{Worker: worker.Config{
		Observers: []worker.Observer{worker.NewLogObserver(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo})))},
	}}
	effects := 0
	on.inBench(t, cfg, worker.KindConfig{}, func(_ context.Context, job *worker.Job) error {
		effects++
		job.SetResult(large)
		return nil
	}, func(t *testing.T, b *jobtest.Bench) {
		id := b.Enqueue(worker.NewJob{Kind: "job"})
		if s := b.Work(); s.Outcome != worker.OutcomeSucceeded || !s.ResultOmitted {
			t.Errorf("omitted: %v: %s", s.ResultOmitted, b.Where(id))
		}
		b.Duplicate(id)
		s := b.Work()
		r := s.Result
		if s.Outcome != worker.OutcomeDuplicate || !r.Omitted || r.Data != nil || r.Size != int64(len(large)) || r.SHA256 != sha256.Sum256(large) {
			t.Errorf("the duplicate was told %d bytes, omitted %v, size %d: %s", len(r.Data), r.Omitted, r.Size, b.Where(id))
		}
		if effects != 1 || len(b.Dead()) > 0 {
			t.Errorf("%d effects, %d dead", effects, len(b.Dead()))
		}
	})
	for _, want := range []string{"level=WARN", "too large to keep", "stored_result=true"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
}
