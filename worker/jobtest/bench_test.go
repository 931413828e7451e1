package jobtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

var errBoom = errors.New("boom")

// handle returns a registry with one raw kind "job".
func handle(cfg worker.KindConfig, fn func(ctx context.Context, job *worker.Job) error) *worker.Registry {
	r := worker.NewRegistry()
	worker.Handle(r, worker.Kind[[]byte]{Name: "job", Config: cfg}, func(ctx context.Context, _ []byte) error {
		return fn(ctx, worker.JobFrom(ctx))
	})
	return r
}

func ok(context.Context, *worker.Job) error { return nil }

func TestNothingRunsUntilTheTestSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bench := jobtest.New(t, handle(worker.KindConfig{}, ok), jobtest.Config{})
		first, second := bench.Enqueue(worker.NewJob{Kind: "job"}), bench.Enqueue(worker.NewJob{Kind: "job"})
		time.Sleep(time.Hour)
		if n := bench.Attempts(first) + bench.Attempts(second); n != 0 {
			t.Fatalf("%d attempts before Work", n)
		}
		if s := bench.Work(); s.Job.ID != first || bench.Attempts(second) != 0 {
			t.Fatalf("Work ran %s, and the second job %d times", s.Job.ID, bench.Attempts(second))
		}
		time.Sleep(time.Hour)
		if n := bench.Attempts(second); n != 0 {
			t.Fatalf("the gate stayed open after Work: %d attempts", n)
		}
		bench.Advance(0)
		if n := bench.Attempts(second); n != 1 {
			t.Fatalf("Advance(0) ran the second job %d times", n)
		}
	})
}

func TestWorkWaitsForTheNextDueJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := 2
		bench := jobtest.New(t, handle(worker.KindConfig{Backoff: mustConstant(t, time.Minute)}, func(context.Context, *worker.Job) error {
			if fails--; fails >= 0 {
				return errBoom
			}
			return nil
		}), jobtest.Config{})
		id := bench.Enqueue(worker.NewJob{Kind: "job", Delay: time.Hour})
		start := time.Now()
		var got []time.Duration
		for range 3 {
			bench.Work()
			got = append(got, time.Since(start))
		}
		if diff := cmp.Diff([]time.Duration{time.Hour, time.Hour + time.Minute, time.Hour + 2*time.Minute}, got); diff != "" {
			t.Errorf("times of the attempts (-want +got):\n%s\n%s", diff, bench.Where(id))
		}
	})
}

func TestWorkTellsItsJobFromThoseThatRan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bench := jobtest.New(t, handle(worker.KindConfig{}, func(_ context.Context, job *worker.Job) error {
			if job.ID == "slow" {
				time.Sleep(time.Second)
			} else {
				time.Sleep(2 * time.Second)
			}
			return nil
		}), jobtest.Config{})
		bench.Enqueue(worker.NewJob{Kind: "job", ID: "slow"})
		bench.Advance(0)
		bench.Enqueue(worker.NewJob{Kind: "job", ID: "other"})
		if s := bench.Work(); s.Job.ID != "other" {
			t.Errorf("Work returned the settlement of %s", s.Job.ID)
		}
	})
}

func TestSeveralQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bench := jobtest.New(t, handle(worker.KindConfig{}, ok), jobtest.Config{
			Worker: worker.Config{Queues: []worker.QueueConfig{{Name: "fast"}, {Name: "slow", DefaultKind: "job"}}},
		})
		bench.Enqueue(worker.NewJob{Kind: "job", ID: "1"})
		bench.EnqueueRaw("slow", queue.Message{Body: []byte("foreign")})
		if s := bench.Work(); s.Queue != "fast" {
			t.Errorf("the first job came from %q", s.Queue)
		}
		if s := bench.Work(); s.Queue != "slow" || string(s.Job.Payload) != "foreign" {
			t.Errorf("the second job came from %q with %q", s.Queue, s.Job.Payload)
		}
	})
}

func TestKillLeavesEverythingToTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var causes []error
		bench := jobtest.New(t, handle(worker.KindConfig{Timeout: time.Hour}, func(ctx context.Context, job *worker.Job) error {
			if job.Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return nil // a success that nobody may hear of
		}), jobtest.Config{Worker: worker.Config{Lease: 30 * time.Second}})
		id := bench.Enqueue(worker.NewJob{Kind: "job"})
		bench.Advance(10 * time.Second)
		start := time.Now()
		bench.Kill()
		if time.Since(start) != 0 {
			t.Errorf("Kill let %s pass", time.Since(start))
		}
		if len(causes) != 1 || !errors.Is(causes[0], jobtest.ErrKilled) {
			t.Errorf("the handler's context ended with %v", causes)
		}
		if n := len(bench.Settlements(id)); n != 0 {
			t.Fatalf("the dead worker settled: %s", bench.Where(id))
		}
		s := bench.Work()
		if s.Outcome != worker.OutcomeSucceeded || s.Job.Attempt != 2 {
			t.Errorf("after the crash: %s in attempt %d", s.Outcome, s.Job.Attempt)
		}
		if waited := time.Since(start); waited < 20*time.Second || waited > 31*time.Second {
			t.Errorf("the lease of the dead worker was over after %s", waited)
		}
	})
}

func TestExpireLeaseAndDuplicate(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*jobtest.Bench, string){
		"lease":     (*jobtest.Bench).ExpireLease,
		"duplicate": (*jobtest.Bench).Duplicate,
	} {
		bubble(t, name, func(t *testing.T) {
			bench := jobtest.New(t, handle(worker.KindConfig{}, func(context.Context, *worker.Job) error {
				time.Sleep(5 * time.Second)
				return nil
			}), jobtest.Config{})
			id := bench.Enqueue(worker.NewJob{Kind: "job"})
			bench.Advance(time.Second)
			fault(bench, id)
			bench.Drain()
			// The claim keeps the second delivery away from the handler, and then answers it.
			if n := bench.Attempts(id); n != 1 {
				t.Errorf("the handler ran %d times: %s", n, bench.Where(id))
			}
			all := bench.Settlements(id)
			if last := all[len(all)-1]; len(all) < 2 || last.Outcome != worker.OutcomeDuplicate {
				t.Errorf("%d settlements, the last: %s", len(all), bench.Where(id))
			}
		})
	}
}

func TestBrokenParts(t *testing.T) {
	t.Parallel()
	for _, part := range []jobtest.Part{jobtest.PartBroker, jobtest.PartClaims, jobtest.PartDeadLetters} {
		bubble(t, string(part), func(t *testing.T) {
			bench := jobtest.New(t, handle(worker.KindConfig{MaxAttempts: 1}, func(context.Context, *worker.Job) error { return errBoom }), jobtest.Config{})
			id := bench.Enqueue(worker.NewJob{Kind: "job"})
			bench.Break(part)
			bench.Advance(time.Minute)
			if len(bench.Dead()) > 0 {
				t.Fatalf("dead although the %s was away: %s", part, bench.Where(id))
			}
			bench.Repair(part)
			bench.Drain()
			if e := bench.DeadOne(); e.Error != "boom" || bench.Attempts(id) != 1 {
				t.Errorf("dead of %q after %d attempts", e.Error, bench.Attempts(id))
			}
		})
	}
}

func TestForceHoldsForLaterWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bench := jobtest.New(t, handle(worker.KindConfig{Destination: "d.test"}, ok), jobtest.Config{})
		bench.Force("d.test", breaker.OverrideOpen)
		bench.Restart()
		id := bench.Enqueue(worker.NewJob{Kind: "job"})
		if s := bench.Work(); s.Outcome != worker.OutcomeDeferred || s.Settlement != worker.SettlementHold || len(bench.Held()) != 1 {
			t.Fatal(bench.Where(id))
		}
		bench.Force("d.test", breaker.OverrideNone)
		bench.Advance(5 * time.Second)
		bench.Drain()
		if bench.Attempts(id) != 1 {
			t.Error(bench.Where(id))
		}
	})
}

func TestFailuresSayWhatHappened(t *testing.T) {
	t.Parallel()
	stuck := func(ctx context.Context, _ *worker.Job) error { return worker.Snooze(30*time.Minute, "not now") }
	for name, c := range map[string]struct {
		do   func(*jobtest.Bench)
		want []string
	}{
		"empty queue": {func(b *jobtest.Bench) { b.Work() }, []string{"nothing waits in the queues", "enqueued so far: nothing"}},
		"never drained": {func(b *jobtest.Bench) {
			b.Enqueue(worker.NewJob{Kind: "job", ID: "j1"})
			b.Drain()
		}, []string{"not empty after 1h20m0s", "job j1: in queue \"default\", ", "handler started 3 times", "deferred, retry (snoozed): snoozed: not now"}},
		"dead": {func(b *jobtest.Bench) {
			b.Enqueue(worker.NewJob{Kind: "job", ID: "j1"})
			b.Work()
			b.DeadOne()
		}, []string{"exactly one dead letter, found 0", "job j1: in queue", "handler started 1 times"}},
		"enqueued": {func(b *jobtest.Bench) {
			b.Enqueue(worker.NewJob{Kind: "job"})
			b.EnqueuedOne("mail")
		}, []string{`of kind "mail"`, "found 0", "1 job"}},
		"lease": {func(b *jobtest.Bench) {
			b.Enqueue(worker.NewJob{Kind: "job", ID: "j1"})
			b.ExpireLease("j1")
		}, []string{"no worker holds job j1", "ready"}},
		"duplicate": {func(b *jobtest.Bench) { b.Duplicate("j9") }, []string{"j9 was never enqueued"}},
	} {
		bubble(t, name, func(t *testing.T) {
			said := failure(t, func(tb testing.TB) {
				c.do(jobtest.New(tb, handle(worker.KindConfig{}, stuck), jobtest.Config{MaxWait: 80 * time.Minute}))
			})
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("the failure does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

func TestMisuseIsExplained(t *testing.T) {
	t.Parallel()
	said := failure(t, func(tb testing.TB) { jobtest.New(tb, worker.NewRegistry(), jobtest.Config{}) })
	if !strings.Contains(said, "synctest.Test(t, func(t *testing.T)") {
		t.Errorf("outside a bubble: %s", said)
	}
	bubble(t, "broker", func(t *testing.T) {
		said := failure(t, func(tb testing.TB) {
			jobtest.New(tb, worker.NewRegistry(), jobtest.Config{Worker: worker.Config{Registry: worker.NewRegistry()}})
		})
		if !strings.Contains(said, "the bench provides them") {
			t.Errorf("with a registry of its own: %s", said)
		}
	})
	bubble(t, "no kind", func(t *testing.T) {
		said := failure(t, func(tb testing.TB) { jobtest.New(tb, worker.NewRegistry(), jobtest.Config{}) })
		if !strings.Contains(said, "no kind is registered") {
			t.Errorf("with an empty registry: %s", said)
		}
	})
}

func mustConstant(t *testing.T, d time.Duration) schedule.Backoff {
	t.Helper()
	p, err := schedule.Constant(d, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
