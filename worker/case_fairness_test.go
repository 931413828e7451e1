package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/limiter"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// visits counts what destinations see.
type visits struct {
	mu        sync.Mutex
	now, peak map[string]int
	last      map[string]time.Time
}

func newVisits() *visits {
	return &visits{now: make(map[string]int), peak: make(map[string]int), last: make(map[string]time.Time)}
}

// visit stays at a destination for d.
func (v *visits) visit(destination string, d time.Duration) {
	v.mu.Lock()
	v.now[destination]++
	v.peak[destination] = max(v.peak[destination], v.now[destination])
	v.mu.Unlock()
	time.Sleep(d)
	v.mu.Lock()
	v.now[destination]--
	v.last[destination] = time.Now()
	v.mu.Unlock()
}

func jobsTo(b *jobtest.Bench, destination string, n int) {
	for range n {
		b.Enqueue(worker.NewJob{Kind: "job", Destination: destination})
	}
}

// One destination that hangs must not take every slot.
func TestHangingDestinationCostsOnlyItsOwnJobs(t *testing.T) {
	t.Parallel()
	v := newVisits()
	cfg := jobtest.Config{Worker: worker.Config{
		Concurrency:  10,
		Destinations: pools.DestinationsConfig{Default: pools.DestinationConfig{Concurrency: new(2)}},
	}}
	inBench(t, cfg, worker.KindConfig{}, func(_ context.Context, job *worker.Job) error {
		if job.Destination == "slow.test" {
			v.visit(job.Destination, 15*time.Second)
		} else {
			v.visit(job.Destination, 10*time.Millisecond)
		}
		return nil
	}, func(t *testing.T, b *jobtest.Bench) {
		jobsTo(b, "slow.test", 50)
		jobsTo(b, "fast.test", 50)
		start := time.Now()
		b.Drain()
		if took := v.last["fast.test"].Sub(start); took >= 3*time.Second {
			t.Errorf("the fast destination's jobs took %s", took)
		}
		if v.peak["slow.test"] != 2 {
			t.Errorf("the slow destination held %d slots at once, want 2", v.peak["slow.test"])
		}
	})
}

// A job that its own destination's limit stops must take nothing from the limit that all share.
func TestRefusedJobTakesNothingFromTheSharedLimit(t *testing.T) {
	t.Parallel()
	v := newVisits()
	cfg := jobtest.Config{Worker: worker.Config{
		Concurrency: 10,
		Destinations: pools.DestinationsConfig{
			Rate:   limiter.Config{Rate: new(20.0)},
			ByName: map[string]pools.DestinationConfig{"a.test": {Rate: limiter.Config{Rate: new(1.0)}}},
		},
	}}
	inBench(t, cfg, worker.KindConfig{}, func(_ context.Context, job *worker.Job) error {
		v.visit(job.Destination, time.Millisecond)
		return nil
	}, func(t *testing.T, b *jobtest.Bench) {
		jobsTo(b, "a.test", 200)
		b.Advance(0)
		jobsTo(b, "b.test", 10)
		start := time.Now()
		b.Drain()
		if took := v.last["b.test"].Sub(start); took >= 2*time.Second {
			t.Errorf("the jobs of b took %s", took)
		}
		// a was not hindered either: 200 jobs at one a second, and no job waits long beyond its turn.
		if took := v.last["a.test"].Sub(start); took < 199*time.Second || took > 4*time.Minute {
			t.Errorf("the jobs of a took %s", took)
		}
	})
}
