package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/worker"
)

// An unkeyed job that was held goes on counting where it stopped: being published again is no new life.
func TestHeldUnkeyedJobKeepsItsAttempts(t *testing.T) {
	var attempts []int
	registry := worker.NewRegistry()
	kind := worker.Kind[[]byte]{Name: "k", Config: worker.KindConfig{Idempotency: worker.None, MaxAttempts: 3}}
	worker.Handle(registry, kind, func(ctx context.Context, _ []byte) error {
		attempts = append(attempts, worker.JobFrom(ctx).Attempt)
		return errors.New("no")
	})
	cfg := worker.Config{Registry: registry, Hold: worker.HoldConfig{After: time.Second, Interval: time.Second}}
	inBubble(t, cfg, func(b *bubble) {
		id := b.enqueue(worker.NewJob{Kind: "k", Destination: "d"})
		b.after(time.Second) // attempt 1 fails; the next is due in half a minute
		b.w.Destinations().Force("d", time.Now(), pools.OverrideOpen)
		b.after(5 * time.Minute)
		depth, err := b.dead.Depth(b.ctx)
		if err != nil || len(depth.Held) != 1 || depth.Held[0].Count != 1 || len(depth.Dead) != 0 {
			t.Fatalf("depth %+v, error %v", depth, err)
		}
		b.w.Destinations().Force("d", time.Now(), pools.OverrideNone)
		b.after(time.Hour)
		if diff := cmp.Diff([]int{1, 2, 3}, attempts); diff != "" {
			t.Error(diff)
		}
		e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
		if err != nil || e.State != dlq.Dead || e.AttemptCount != 3 || e.Cause != dlq.CauseExhausted {
			t.Errorf("entry %+v, error %v", e, err)
		}
	})
}

// Jobs that name the same host by many URLs share one breaker, and so one backlog, one hold and one ramp.
func TestHeldJobsOfOneHostShareTheirRamp(t *testing.T) {
	const jobs = 300
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{}, func(context.Context, *worker.Job) error { return nil })
	cfg := worker.Config{Registry: registry, Hold: worker.HoldConfig{After: -1, Backlog: 10, Interval: time.Second}}
	inBubble(t, cfg, func(b *bubble) {
		b.w.Destinations().Force("hooks.example", time.Now(), pools.OverrideOpen)
		for i := range jobs {
			b.enqueue(worker.NewJob{Kind: "k", Destination: fmt.Sprintf("https://Hooks.example/cb?id=%d", i)})
		}
		b.after(10 * time.Minute)
		depth, err := b.dead.Depth(b.ctx)
		if err != nil || len(depth.Held) != 1 || depth.Held[0].Destination != "hooks.example" || depth.Held[0].Count < jobs-10 {
			t.Fatalf("%d held destinations, error %v", len(depth.Held), err)
		}
		b.w.Destinations().Force("hooks.example", time.Now(), pools.OverrideNone)
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
		if s.Outcome == worker.Succeeded {
			n++
		}
	}
	return n
}

// Probes that nobody has time to receive are not followed by others, interval after interval: the backlog would be back in the queue.
func TestProbesThatDoNotArriveAreNotMultiplied(t *testing.T) {
	const jobs = 1000
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{MaxAttempts: 20}, func(context.Context, *worker.Job) error { return errors.New("no") })
	work(registry, "long", worker.KindConfig{Timeout: time.Hour}, func(context.Context, *worker.Job) error {
		time.Sleep(5 * time.Minute)
		return nil
	})
	cfg := worker.Config{Registry: registry, Concurrency: 1, Hold: worker.HoldConfig{After: time.Second, Interval: time.Second}}
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
