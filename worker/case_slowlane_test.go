package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

var errHung = errors.New("no answer")

// waits remembers how long jobs waited from when they were enqueued.
type waits struct {
	mu     sync.Mutex
	counts map[string]int // calls by class of destination
	back   map[string]int // jobs put back, likewise
	worst  time.Duration  // of a job to a healthy one
	hung   int            // calls to hanging ones that run now
	most   int
}

// handle answers for a destination whose name says what it is like.
func (w *waits) handle(_ context.Context, job *worker.Job) error {
	class, _, _ := strings.Cut(job.Destination, "-")
	w.mu.Lock()
	w.counts[class]++
	if class == "fast" {
		w.worst = max(w.worst, time.Since(job.EnqueuedAt))
		w.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		return nil
	}
	w.hung++
	w.most = max(w.most, w.hung)
	w.mu.Unlock()
	time.Sleep(15 * time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hung--
	return worker.Unavailable(job.Destination, errHung)
}

// Observe implements [worker.Observer].
func (w *waits) Observe(e worker.Event) {
	if s, ok := e.(*worker.Settled); ok && s.Outcome == worker.OutcomeDeferred {
		class, _, _ := strings.Cut(s.Job.Destination, "-")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.back[class]++
	}
}

// inHangingFleet runs do with 34 endpoints that hang for 15 s a call and 40 that answer, on 100 slots. No breaker comes to help.
func inHangingFleet(t *testing.T, lane pools.SlowLaneConfig, do func(t *testing.T, w *waits)) {
	t.Helper()
	w := &waits{counts: make(map[string]int), back: make(map[string]int)}
	cfg := jobtest.Config{Worker: worker.Config{
		Concurrency: 100, Observers: []worker.Observer{w},
		Destinations: pools.DestinationsConfig{SlowLane: lane, Default: pools.DestinationConfig{
			Concurrency: new(3), Breaker: breaker.Config{FailurePercent: new(0)},
		}},
	}}
	inBench(t, cfg, worker.KindConfig{Keyed: new(false)}, w.handle, func(t *testing.T, b *jobtest.Bench) {
		for i := range 40 {
			jobsTo(b, fmt.Sprintf("fast-%d", i), 1)
			b.Advance(50 * time.Millisecond)
		}
		for i := range 34 {
			jobsTo(b, fmt.Sprintf("hang-%d", i), 6)
		}
		for i := range 200 {
			jobsTo(b, fmt.Sprintf("fast-%d", i%40), 1)
			b.Advance(100 * time.Millisecond)
		}
		do(t, w)
		b.Advance(10 * time.Minute)
	})
}

// K2: 34 hanging endpoints of 3 calls each would take all of 100 slots. They get a quarter, and no job to a healthy endpoint is ever put back.
func TestHealthyEndpointsNeverWaitForHangingOnes(t *testing.T) {
	t.Parallel()
	inHangingFleet(t, pools.SlowLaneConfig{Slots: 25}, func(t *testing.T, w *waits) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.back["fast"] > 0 || w.counts["fast"] != 240 {
			t.Errorf("%d jobs to healthy endpoints were put back, %d ran, want none and 240", w.back["fast"], w.counts["fast"])
		}
		if w.worst > 100*time.Millisecond {
			t.Errorf("one waited for %s", w.worst)
		}
		if w.most > 50 || w.counts["hang"] < 25 || w.back["hang"] == 0 {
			t.Errorf("%d calls to hanging endpoints at once, %d in all, %d put back", w.most, w.counts["hang"], w.back["hang"])
		}
	})
}

// Without the lane they do: the test above would not hold by itself.
func TestHangingEndpointsTakeEverySlotWithoutALane(t *testing.T) {
	t.Parallel()
	inHangingFleet(t, pools.SlowLaneConfig{}, func(t *testing.T, w *waits) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.most < 99 || w.worst < 5*time.Second {
			t.Errorf("%d calls hung at once and the longest wait was %s", w.most, w.worst)
		}
	})
}
