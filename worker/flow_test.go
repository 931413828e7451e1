package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// message returns the message of a job as a producer makes it.
func message(t *testing.T, env queue.Envelope) queue.Message {
	t.Helper()
	if env.EnqueuedAt.IsZero() {
		env.EnqueuedAt = time.Now()
	}
	m, err := queue.NewMessage(env, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A copy that comes before its run is due waits for what the ledger says, whoever wrote it there.
func TestEarlyCopyWaitsForTheLedger(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"failed": errBoom, "snoozed": worker.Snooze(time.Minute, "later")} {
		t.Run(name, func(t *testing.T) {
			var ran []time.Time
			registry := worker.NewRegistry()
			work(registry, "k", worker.KindConfig{Backoff: every(t, time.Minute)}, func(context.Context, *worker.Job) error {
				if ran = append(ran, time.Now()); len(ran) == 1 {
					return answer
				}
				return nil
			})
			inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
				m := message(t, queue.Envelope{ID: "a", Kind: "k"})
				b.publish(m)
				b.after(time.Second)
				b.publish(m)
				b.after(10 * time.Minute)
				if len(ran) != 2 || ran[1].Sub(ran[0]) < time.Minute {
					t.Errorf("ran at %v", ran)
				}
			})
		})
	}
}

// A message that a broker with short delays hands over before its time is put back, and spends nothing.
func TestMessageBeforeItsTimeIsPutBack(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		var ran []*worker.Job
		var at time.Time
		registry := worker.NewRegistry()
		work(registry, "k", worker.KindConfig{Keyed: &keyed}, func(_ context.Context, job *worker.Job) error {
			ran, at = append(ran, job), time.Now()
			return nil
		})
		inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
			due := time.Now().Add(time.Hour)
			b.publish(message(t, queue.Envelope{ID: "a", Kind: "k", NotBefore: due}))
			b.after(2 * time.Hour)
			if len(ran) != 1 || at.Before(due) || ran[0].Attempt != 1 {
				t.Errorf("ran %v at %v", ran, at)
			}
		})
	})
}

// countedStore counts claims and completions, and can refuse the latter.
type countedStore struct {
	idempotency.Store
	down                atomic.Bool
	claimed, completing atomic.Int64
}

func (s *countedStore) Claim(ctx context.Context, reqs []idempotency.Request) []idempotency.Claim {
	s.claimed.Add(int64(len(reqs)))
	return s.Store.Claim(ctx, reqs)
}

func (s *countedStore) Complete(ctx context.Context, comps []idempotency.Completion) []error {
	s.completing.Add(1)
	if s.down.Load() {
		return []error{idempotency.ErrUnavailable}
	}
	return s.Store.Complete(ctx, comps)
}

// A job that is done waits for its store with ever longer pauses, and is done once.
func TestCompletionWaitsForItsStore(t *testing.T) {
	t.Parallel()
	calls := 0
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{}, func(context.Context, *worker.Job) error {
		calls++
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
		store := &countedStore{Store: b.claims}
		store.down.Store(true)
		b.start(worker.Config{Registry: registry, Store: store})
		id := b.enqueue(worker.NewJob{Kind: "k"})
		b.after(10 * time.Minute)
		if n := store.completing.Load(); n < 100 || n > 320 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		store.down.Store(false)
		b.after(time.Minute)
		if s := b.settled(id); calls != 1 || len(s) != 1 || s[0].Outcome != worker.OutcomeSucceeded || s[0].SettleErr != nil {
			t.Errorf("%d calls, settled %+v", calls, s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if err := b.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A job that its destination would refuse anyway writes nothing to the store.
func TestRefusedDestinationCostsNoClaim(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{Destination: "d"}, func(context.Context, *worker.Job) error { return nil })
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
		store := &countedStore{Store: b.claims}
		b.start(worker.Config{Registry: registry, Store: store})
		b.w.Destinations().Force("d", time.Now(), breaker.OverrideOpen)
		id := b.enqueue(worker.NewJob{Kind: "k"})
		b.after(10 * time.Minute)
		if n := store.claimed.Load(); n != 0 || len(b.settled(id)) == 0 {
			t.Errorf("%d claims for %d deliveries", n, len(b.settled(id)))
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if err := b.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Unavailable is told to the breaker that it names, and only to that one.
func TestUnavailableOpensTheOtherBreaker(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{Destination: "own", MaxAttempts: 1}, func(context.Context, *worker.Job) error {
		return worker.Unavailable("other", errBoom)
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		for range 40 {
			b.enqueue(worker.NewJob{Kind: "k"})
		}
		b.after(5 * time.Second)
		now := time.Now()
		if _, open := b.w.Destinations().OpenSince("other", now); !open {
			t.Error("the breaker of other is closed after 40 failures")
		}
		if _, open := b.w.Destinations().OpenSince("own", now); open {
			t.Error("the breaker of own is open for the failures of other")
		}
	})
}

// A gate closes the destination for all its jobs, and for as long as was asked.
func TestGateClosesTheDestination(t *testing.T) {
	t.Parallel()
	ran := make(map[string]time.Time)
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{Destination: "d"}, func(_ context.Context, job *worker.Job) error {
		ran[job.ID] = time.Now()
		if job.ID == "a" && job.Attempt == 1 {
			return &worker.Error{Outcome: worker.OutcomeFailed, Err: errBoom, After: time.Minute, Throttle: time.Minute}
		}
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		start := time.Now()
		b.enqueue(worker.NewJob{Kind: "k", ID: "a"})
		b.after(time.Second)
		b.enqueue(worker.NewJob{Kind: "k", ID: "b"})
		b.after(10 * time.Minute)
		if ran["b"].Sub(start) < time.Minute || len(b.settled("b")) == 0 {
			t.Errorf("b ran at %v", ran)
		}
	})
}

// A handler that was abandoned keeps its place in the bulkhead until it returns: that such jobs do not pile up is what the place is for.
func TestAbandonedHandlerKeepsItsPlace(t *testing.T) {
	t.Parallel()
	running, most, calls := 0, 0, 0
	registry := worker.NewRegistry()
	cfg := worker.KindConfig{Bulkhead: 1, Waiting: new(0), Timeout: time.Second, TimeoutGrace: time.Second, MaxAttempts: 1, Keyed: new(false)}
	work(registry, "k", cfg, func(context.Context, *worker.Job) error {
		calls++
		running++
		most = max(most, running)
		time.Sleep(time.Minute)
		running--
		return nil
	})
	inBubble(t, worker.Config{Registry: registry, Concurrency: 5}, func(b *bubble) {
		for range 3 {
			b.enqueue(worker.NewJob{Kind: "k"})
		}
		b.after(time.Hour)
		if most != 1 || calls != 3 {
			t.Errorf("%d calls for 3 jobs, %d at once in a bulkhead of 1", calls, most)
		}
		if n := b.w.Snapshot().Abandoned; n != 0 {
			t.Errorf("%d still abandoned", n)
		}
		for _, q := range b.w.Snapshot().Queues {
			if q.InUse != 0 {
				t.Errorf("%d slots in use after all handlers have returned", q.InUse)
			}
		}
	})
}

// Attempts that were spent before a message was made count, with claims and without.
func TestAttemptBaseCounts(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		var attempts []int
		registry := worker.NewRegistry()
		work(registry, "k", worker.KindConfig{Keyed: &keyed, MaxAttempts: 4}, func(_ context.Context, job *worker.Job) error {
			attempts = append(attempts, job.Attempt)
			return errBoom
		})
		inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
			b.publish(message(t, queue.Envelope{ID: "a", Kind: "k", AttemptBase: 2}))
			b.after(time.Hour)
			if diff := cmp.Diff([]int{3, 4}, attempts); diff != "" {
				t.Error(diff)
			}
		})
	})
}

// When many jobs of one destination fail at once, their next attempts wait for the retry budget, and spend nothing while they do.
func TestEmptyRetryBudgetDefersRetries(t *testing.T) {
	t.Parallel()
	const jobs = 60
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{Destination: "d", Backoff: every(t, 10*time.Second)}, func(_ context.Context, job *worker.Job) error {
		if job.Attempt == 1 {
			return &worker.Error{Outcome: worker.OutcomeFailed, Err: errBoom} // says nothing of the destination
		}
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		for range jobs {
			b.enqueue(worker.NewJob{Kind: "k"})
		}
		b.after(10 * time.Minute)
		deferred, succeeded := 0, 0
		for _, s := range b.settled("") {
			switch {
			case s.Outcome == worker.OutcomeSucceeded && s.Job.Attempt == 2:
				succeeded++
			case s.Outcome == worker.OutcomeDeferred && s.Reason == pools.ReasonBudgetEmpty.String():
				deferred++
			}
		}
		if succeeded != jobs || deferred == 0 {
			t.Errorf("%d of %d jobs succeeded in attempt 2, after %d deferrals for the budget", succeeded, jobs, deferred)
		}
	})
}

// A copy that finds its key claimed looks again within one lease, so that a claim whose owner has died is taken over soon.
func TestBusyCopyLooksAgainWithinALease(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{}, func(context.Context, *worker.Job) error {
		time.Sleep(5 * time.Second)
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		m := message(t, queue.Envelope{ID: "a", Kind: "k"})
		b.publish(m)
		b.after(time.Second)
		b.publish(m)
		b.after(40 * time.Second) // a lease and its jitter
		s := b.settled("a")
		if len(s) != 3 || s[0].Reason != worker.ReasonClaimBusy || s[2].Outcome != worker.OutcomeDuplicate {
			t.Errorf("%d settlements, the last %+v", len(s), s[len(s)-1])
		}
	})
}
