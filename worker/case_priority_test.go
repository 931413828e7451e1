package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/limiter"
	"github.com/caisson-go/caisson/worker"
)

// queueWaits is how long jobs of each queue waited until they ran.
type queueWaits struct {
	mu    sync.Mutex
	worst map[string]time.Duration
	ran   map[string]int
}

func (q *queueWaits) note(job *worker.Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.worst[job.Queue] = max(q.worst[job.Queue], time.Since(job.EnqueuedAt))
	q.ran[job.Queue]++
}

// underOverload gives a worker 700 bulk jobs and, while they wait, one urgent job a second, which share what cfg and kind limit to about
// ten jobs a second. It returns how long the urgent ones had to wait.
func underOverload(t *testing.T, kind worker.KindConfig, destinations pools.DestinationsConfig) *queueWaits {
	t.Helper()
	q := &queueWaits{worst: map[string]time.Duration{}, ran: map[string]int{}}
	registry := worker.NewRegistry()
	kind.Keyed = new(false)
	work(registry, "k", kind, func(_ context.Context, job *worker.Job) error {
		q.note(job)
		time.Sleep(500 * time.Millisecond)
		return nil
	})
	cfg := worker.Config{
		Registry: registry, Concurrency: 40, Destinations: destinations,
		Queues: []worker.QueueConfig{{Name: "urgent"}, {Name: "bulk", Priority: 1}},
	}
	inBubble(t, cfg, func(b *bubble) {
		for range 700 {
			b.enqueue(worker.NewJob{Kind: "k", Queue: "bulk", Destination: "d"})
		}
		b.after(2 * time.Second)
		for range 60 {
			b.enqueue(worker.NewJob{Kind: "k", Queue: "urgent", Destination: "d"})
			b.after(time.Second)
		}
		b.after(5 * time.Minute)
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ran["urgent"] != 60 || q.ran["bulk"] != 700 {
		t.Errorf("ran %v", q.ran)
	}
	return q
}

// Under overload the lowest class is put back first: what is urgent waits for what runs, not for the backlog of what is not.
func TestUrgentJobsDoNotWaitForTheBacklog(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]struct {
		kind         worker.KindConfig
		destinations pools.DestinationsConfig
		maxWait      time.Duration // of an urgent job
	}{
		"the kind's bulkhead":           {worker.KindConfig{Bulkhead: 5, Waiting: new(5)}, pools.DestinationsConfig{}, time.Second},
		"the destination's concurrency": {worker.KindConfig{}, pools.DestinationsConfig{Default: pools.DestinationConfig{Concurrency: new(5)}}, time.Second},
		"the destination's rate":        {worker.KindConfig{}, pools.DestinationsConfig{Default: pools.DestinationConfig{Rate: limiter.Config{Rate: new(10.0)}}}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := underOverload(t, limit.kind, limit.destinations).worst["urgent"]; got > limit.maxWait {
				t.Errorf("an urgent job waited for %s, want at most %s", got, limit.maxWait)
			}
		})
	}
}
