package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// An unkeyed job that was held goes on counting where it stopped: being published again is no new life.
func TestHeldUnkeyedJobKeepsItsAttempts(t *testing.T) {
	t.Parallel()
	var attempts []int
	registry := worker.NewRegistry()
	kind := worker.Kind[[]byte]{Name: "k", Config: worker.KindConfig{Keyed: new(false), MaxAttempts: 3}}
	worker.Handle(registry, kind, func(ctx context.Context, _ []byte) error {
		attempts = append(attempts, worker.JobFrom(ctx).Attempt)
		return errors.New("no")
	})
	cfg := worker.Config{Registry: registry, Hold: worker.HoldConfig{After: new(time.Second), Interval: time.Second}}
	inBubble(t, cfg, func(b *bubble) {
		id := b.enqueue(worker.NewJob{Kind: "k", Destination: "d"})
		b.after(time.Second) // attempt 1 fails; the next is due in half a minute
		b.w.Destinations().Force("d", time.Now(), breaker.OverrideOpen)
		b.after(5 * time.Minute)
		depth, err := b.dead.Depth(b.ctx)
		if err != nil || len(depth.Held) != 1 || depth.Held[0].Count != 1 || len(depth.Dead) != 0 {
			t.Fatalf("depth %+v, error %v", depth, err)
		}
		b.w.Destinations().Force("d", time.Now(), breaker.OverrideNone)
		b.after(time.Hour)
		if diff := cmp.Diff([]int{1, 2, 3}, attempts); diff != "" {
			t.Error(diff)
		}
		e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
		if err != nil || e.State != dlq.StateDead || e.AttemptCount != 3 || e.Cause != dlq.CauseExhausted {
			t.Errorf("entry %+v, error %v", e, err)
		}
	})
}

// Jobs that name the same host by many URLs share one breaker, and so one backlog, one hold and one ramp.
func TestHeldJobsOfOneHostShareTheirRamp(t *testing.T) {
	t.Parallel()
	const jobs = 300
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{}, func(context.Context, *worker.Job) error { return nil })
	cfg := worker.Config{Registry: registry, Hold: worker.HoldConfig{After: new(time.Duration(0)), Backlog: new(10), Interval: time.Second}}
	inBubble(t, cfg, func(b *bubble) {
		b.w.Destinations().Force("hooks.example", time.Now(), breaker.OverrideOpen)
		for i := range jobs {
			b.enqueue(worker.NewJob{Kind: "k", Destination: fmt.Sprintf("https://Hooks.example/cb?id=%d", i)})
		}
		b.after(10 * time.Minute)
		depth, err := b.dead.Depth(b.ctx)
		if err != nil || len(depth.Held) != 1 || depth.Held[0].Destination != "hooks.example" || depth.Held[0].Count < jobs-10 {
			t.Fatalf("%d held destinations, error %v", len(depth.Held), err)
		}
		b.w.Destinations().Force("hooks.example", time.Now(), breaker.OverrideNone)
		b.after(1500 * time.Millisecond)
		if n := b.succeeded(); n > 30 {
			t.Errorf("%d jobs hit the destination at once: no ramp", n)
		}
		b.after(10 * time.Minute)
		if n := b.succeeded(); n != jobs {
			t.Errorf("%d of %d jobs succeeded", n, jobs)
		}
	})
}

func (b *bubble) succeeded() (n int) {
	for _, s := range b.settled("") {
		if s.Outcome == worker.OutcomeSucceeded {
			n++
		}
	}
	return n
}

// Probes that nobody has time to receive are not followed by others, interval after interval: the backlog would be back in the queue.
func TestProbesThatDoNotArriveAreNotMultiplied(t *testing.T) {
	t.Parallel()
	const jobs = 1000
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{MaxAttempts: 20}, func(context.Context, *worker.Job) error { return errors.New("no") })
	work(registry, "long", worker.KindConfig{Timeout: time.Hour}, func(context.Context, *worker.Job) error {
		time.Sleep(5 * time.Minute)
		return nil
	})
	cfg := worker.Config{Registry: registry, Concurrency: 1, Hold: worker.HoldConfig{After: new(time.Second), Interval: time.Second}}
	inBubble(t, cfg, func(b *bubble) {
		for range jobs {
			b.enqueue(worker.NewJob{Kind: "k", Destination: "d"})
		}
		b.after(time.Minute) // the breaker is open, the backlog is held
		b.enqueue(worker.NewJob{Kind: "long"})
		b.after(2 * time.Minute)
		before := b.released()
		b.after(time.Minute)
		after := b.released()
		if n := after - before; n == 0 || n > 70 {
			t.Errorf("%d of %d held jobs were released in a minute without a free slot", n, jobs)
		}
		b.after(3 * time.Minute)
	})
}

func (b *bubble) released() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if r, ok := e.(*worker.Released); ok {
			n += r.Count
		}
	}
	return n
}

// What an operator forced open is held at once, without a look at how long it has been or how many wait; a job that comes back runs once.
func TestForcedOpenIsHeldAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  worker.HoldConfig
		held int
	}{
		"by default":           {worker.HoldConfig{}, 1},
		"only a backlog holds": {worker.HoldConfig{After: new(time.Duration(0))}, 1},
		"only time holds":      {worker.HoldConfig{Backlog: new(0)}, 1},
		"nothing holds":        {worker.HoldConfig{After: new(time.Duration(0)), Backlog: new(0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			registry := worker.NewRegistry()
			work(registry, "k", worker.KindConfig{}, func(context.Context, *worker.Job) error {
				calls++
				return nil
			})
			inBubble(t, worker.Config{Registry: registry, Hold: c.cfg}, func(b *bubble) {
				b.w.Destinations().Force("d", time.Now(), breaker.OverrideOpen)
				id := b.enqueue(worker.NewJob{Kind: "k", Destination: "d"})
				b.after(time.Second)
				depth, err := b.dead.Depth(b.ctx)
				var held int
				for _, h := range depth.Held {
					held += h.Count
				}
				if s := b.settled(id); err != nil || held != c.held || len(s) == 0 || (s[0].Settlement == worker.SettlementHold) != (c.held == 1) || s[0].Reason != "forced_open" {
					t.Fatalf("%d held, error %v, settled %+v", held, err, s)
				}
				b.w.Destinations().Force("d", time.Now(), breaker.OverrideNone)
				b.after(time.Hour)
				if calls != 1 || b.succeeded() != 1 {
					t.Errorf("%d calls, %d succeeded", calls, b.succeeded())
				}
			})
		})
	}
}

// Who was held for longer than the kind's max age has not waited for that long: it runs once the destination is let in again.
func TestHeldJobsDoNotAge(t *testing.T) {
	t.Parallel()
	calls := 0
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{MaxAge: time.Hour}, func(context.Context, *worker.Job) error {
		calls++
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		b.w.Destinations().Force("d", time.Now(), breaker.OverrideOpen)
		b.enqueue(worker.NewJob{Kind: "k", Destination: "d"})
		b.after(5 * time.Hour)
		b.w.Destinations().Force("d", time.Now(), breaker.OverrideNone)
		b.after(time.Hour)
		if calls != 1 || b.succeeded() != 1 {
			t.Errorf("%d calls, %d succeeded", calls, b.succeeded())
		}
	})
}

// A handler that knows of a pause which the worker has not heard of yet has its job held, and nothing is spent on it.
func TestHandlerHoldsItsJob(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		var mu sync.Mutex // of what the handler shares with the test
		paused := true
		var attempts []int
		registry := worker.NewRegistry()
		work(registry, "k", worker.KindConfig{MaxAttempts: 1, Keyed: &keyed}, func(_ context.Context, job *worker.Job) error {
			mu.Lock()
			defer mu.Unlock()
			attempts = append(attempts, job.Attempt)
			if paused {
				return &worker.Error{Outcome: worker.OutcomeDeferred, Hold: true, After: time.Minute, Err: errors.New("paused")}
			}
			return nil
		})
		inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
			id := b.enqueue(worker.NewJob{Kind: "k", Destination: "d"})
			b.after(5 * time.Minute)
			e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
			if err != nil || e.State != dlq.StateHeld || e.AttemptCount != 0 || len(e.Attempts) != 0 {
				t.Fatalf("entry %+v, error %v", e, err)
			}
			if s := b.settled(id)[0]; s.Outcome != worker.OutcomeDeferred || s.Settlement != worker.SettlementHold || s.Reason != worker.ReasonHeld {
				t.Errorf("settled as %s, %s (%s)", s.Outcome, s.Settlement, s.Reason)
			}
			mu.Lock()
			if n := len(attempts); n < 2 || n > 40 {
				t.Errorf("asked %d times in five minutes, want one look each ten seconds or so", n)
			}
			paused = false
			mu.Unlock()
			b.after(time.Minute)
			if n := b.succeeded(); n != 1 {
				t.Errorf("%d succeeded", n)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, n := range attempts {
				if n != 1 {
					t.Errorf("attempts %v: being held spent one", attempts)
				}
			}
		})
	})
}

// Where a job cannot be held it is put back, and comes again after the time that its handler names.
func TestHandlerCannotHold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field fieldConfig
		job   worker.NewJob
	}{
		"sink":           {fieldConfig{sink: true}, worker.NewJob{Kind: "job", Destination: "d"}},
		"FIFO":           {fieldConfig{caps: queue.Capabilities{FIFO: true}}, worker.NewJob{Kind: "job", Destination: "d"}},
		"no destination": {fieldConfig{}, worker.NewJob{Kind: "job"}},
	} {
		t.Run(name, func(t *testing.T) {
			var at []time.Time
			registry := worker.NewRegistry()
			work(registry, "job", worker.KindConfig{}, func(context.Context, *worker.Job) error {
				if at = append(at, time.Now()); len(at) < 3 {
					return &worker.Error{Outcome: worker.OutcomeDeferred, Hold: true, After: time.Minute, Err: errors.New("paused")}
				}
				return nil
			})
			c.field.worker.Registry = registry
			inField(t, c.field, func(f *field) {
				f.add(c.job.Destination, "a")
				f.after(10 * time.Minute)
				if len(at) != 3 || at[1].Sub(at[0]) < time.Minute || f.succeeded() != 1 {
					t.Errorf("ran at %v, %d succeeded", at, f.succeeded())
				}
			})
		})
	}
}
