package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/worker"
)

var errOverloaded = errors.New("overloaded")

// A bulkhead that adapts comes down to what the other side serves, and back up when it serves more.
func TestBulkheadFollowsTheCapacity(t *testing.T) {
	t.Parallel()
	var running, capacity atomic.Int32
	capacity.Store(2)
	registry := worker.NewRegistry()
	kind := worker.KindConfig{
		Bulkhead: 10, Adaptive: adaptive.LimitConfig{Min: new(1)}, MaxAttempts: 1000, Backoff: every(t, time.Second), Keyed: new(false),
	}
	work(registry, "k", kind, func(context.Context, *worker.Job) error {
		over := running.Add(1) > capacity.Load()
		defer running.Add(-1)
		time.Sleep(time.Second)
		if over {
			return errOverloaded
		}
		return nil
	})
	inBubble(t, worker.Config{Registry: registry, Concurrency: 20}, func(b *bubble) {
		size := func() int { return b.w.Snapshot().Pools[0].Size }
		if got := size(); got != 10 {
			t.Errorf("starts at %d", got)
		}
		for range 400 {
			b.enqueue(worker.NewJob{Kind: "k"})
		}
		b.after(40 * time.Second)
		if got := size(); got < 1 || got > 3 {
			t.Errorf("size %d where 2 are served", got)
		}
		capacity.Store(100)
		b.after(30 * time.Second)
		if got := size(); got != 10 {
			t.Errorf("size %d where all are served, want 10", got)
		}
		b.after(time.Hour)
		if left := b.w.Snapshot().Pools[0].InUse; left != 0 {
			t.Errorf("%d permits are lost", left)
		}
	})
}

func TestLimitsOfAKindAreChecked(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]worker.KindConfig{
		"needs a bulkhead": {Adaptive: adaptive.LimitConfig{Min: new(1)}},
		"adaptive max 2":   {Bulkhead: 2, Adaptive: adaptive.LimitConfig{Min: new(1), Max: 2}},
		"waiting -1":       {Bulkhead: 2, Waiting: new(-1)},
		"decrease 2":       {Bulkhead: 2, Adaptive: adaptive.LimitConfig{Min: new(1), Decrease: 2}},
	} {
		registry := worker.NewRegistry()
		work(registry, "k", cfg, func(context.Context, *worker.Job) error { return nil })
		r := memoryRig(t)
		_, err := worker.New(worker.Config{Broker: r.broker, Registry: registry, DeadLetters: r.dead})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The timeout comes down to what attempts take, and goes back up when they take longer. Neither jobs nor breaker are worse for it.
func TestTimeoutFollowsHowLongAttemptsTake(t *testing.T) {
	t.Parallel()
	var length, cut atomic.Int64
	length.Store(int64(100 * time.Millisecond))
	registry := worker.NewRegistry()
	kind := worker.KindConfig{
		Timeout: 10 * time.Second, AdaptiveTimeout: adaptive.TimeoutConfig{Floor: new(time.Millisecond)}, MaxAttempts: 1000,
		Backoff: every(t, time.Second), Keyed: new(false),
	}
	work(registry, "k", kind, func(ctx context.Context, _ *worker.Job) error {
		select {
		case <-time.After(time.Duration(length.Load())):
			return nil
		case <-ctx.Done():
			cut.Add(1)
			return context.Cause(ctx)
		}
	})
	inBubble(t, worker.Config{Registry: registry, Concurrency: 1}, func(b *bubble) {
		timeout := func() time.Duration { return b.w.Snapshot().Kinds[0].Timeout }
		if got := timeout(); got != 10*time.Second {
			t.Errorf("starts at %s", got)
		}
		run := func(n int) {
			for range n {
				b.enqueue(worker.NewJob{Kind: "k"})
			}
			b.after(10 * time.Minute)
		}
		run(100)
		if got := timeout(); got < 200*time.Millisecond || got > 250*time.Millisecond || cut.Load() > 0 {
			t.Errorf("timeout %s after attempts of 100 ms; %d were cut off", got, cut.Load())
		}
		length.Store(int64(2 * time.Second))
		run(100)
		if got := timeout(); got < 2*time.Second || got > 10*time.Second || cut.Load() == 0 {
			t.Errorf("timeout %s after attempts of 2 s; %d were cut off", got, cut.Load())
		}
		if done := len(b.settled("")) - int(cut.Load()); done != 200 {
			t.Errorf("%d jobs done, want 200", done)
		}
	})
}

// A destination of its own pace has a timeout of its own, never above the kind's.
func TestDestinationsTimeoutHoldsForItsJobs(t *testing.T) {
	t.Parallel()
	ends := make(chan time.Duration, 1)
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{Timeout: 10 * time.Second, Keyed: new(false)}, func(ctx context.Context, job *worker.Job) error {
		if job.ID == "last" || job.ID == "first" {
			end, _ := ctx.Deadline()
			ends <- time.Until(end)
		}
		time.Sleep(50 * time.Millisecond)
		return nil
	})
	cfg := worker.Config{Registry: registry, Concurrency: 5, Destinations: pools.DestinationsConfig{
		Default: pools.DestinationConfig{Timeout: adaptive.TimeoutConfig{Floor: new(time.Millisecond), Ceiling: time.Minute}},
	}}
	inBubble(t, cfg, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "k", ID: "first", Destination: "d"})
		if got := <-ends; got != 10*time.Second {
			t.Errorf("%s for the first job, want the kind's 10s", got)
		}
		for range 30 {
			b.enqueue(worker.NewJob{Kind: "k", Destination: "d"})
		}
		b.after(time.Minute)
		b.enqueue(worker.NewJob{Kind: "k", ID: "last", Destination: "d"})
		if got := <-ends; got < 100*time.Millisecond || got > 130*time.Millisecond {
			t.Errorf("%s, want twice 50 ms", got)
		}
	})
}
