package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// A destination that stays dead with a long backlog: its jobs must not cycle through the broker, must not slow others down, and must all be
// delivered, at a ramp, once it is repaired. Time is virtual, so that half an hour of outage and every latency are exact.
func TestLongOutageOfOneDestination(t *testing.T) {
	t.Parallel()
	jobs := 2_000
	if os.Getenv("SOAK") != "" {
		jobs = 100_000
	}
	synctest.Test(t, func(t *testing.T) { newOutage(t, jobs).run() })
}

type outage struct {
	t      *testing.T
	jobs   int
	rig    *rig
	broker *countingBroker
	down   atomic.Bool

	mu        sync.Mutex
	delivered map[string]int
	times     []time.Time     // of deliveries to the sick destination after its repair
	latencies []time.Duration // of the healthy destination's jobs
}

func newOutage(t *testing.T, jobs int) *outage {
	o := &outage{t: t, jobs: jobs, rig: memoryRig(t), delivered: make(map[string]int)}
	o.broker = &countingBroker{Broker: o.rig.broker, pick: func(m queue.Message) bool {
		env, err := m.Envelope()
		return err == nil && env.Destination == "sick.example"
	}}
	o.down.Store(true)
	return o
}

func (o *outage) run() {
	t := o.t
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	w := o.worker()
	go func() { done <- w.Run(ctx) }()
	o.enqueue("sick.example", o.jobs)
	o.trickle(time.Minute)
	calm := o.worst()

	time.Sleep(29 * time.Minute)
	again := o.broker.published.Load() - int64(o.jobs) // the first publish is the producer's, not ours
	perJob := float64(again+o.broker.received.Load()+o.broker.settled.Load()) / float64(o.jobs)
	t.Logf("%d jobs, half an hour of outage: %.2f broker operations per job (%d published again, %d received, %d settled)", o.jobs, perJob,
		again, o.broker.received.Load(), o.broker.settled.Load())
	if perJob > 3 {
		t.Errorf("%.2f broker operations per job, want at most 3", perJob)
	}
	if calm > 50*time.Millisecond {
		t.Errorf("a healthy destination's job waited %s beside the sick one", calm)
	}

	o.down.Store(false)
	repaired := time.Now()
	for range 3600 {
		if o.count("sick.example") == o.jobs {
			break
		}
		time.Sleep(time.Second)
	}
	t.Logf("all delivered %s after the repair", time.Since(repaired))
	o.checkDelivered(repaired)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := o.rig.broker.Close(); err != nil {
		t.Error(err)
	}
}

func (o *outage) worker() *worker.Worker {
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[[]byte]{Name: "call"}, o.handle)
	w, err := worker.New(worker.Config{Broker: o.broker, Registry: registry, Store: o.rig.claims, DeadLetters: o.rig.dead})
	if err != nil {
		o.t.Fatal(err)
	}
	return w
}

func (o *outage) handle(ctx context.Context, _ []byte) error {
	job := worker.JobFrom(ctx)
	time.Sleep(5 * time.Millisecond)
	if strings.HasPrefix(job.Destination, "sick") && o.down.Load() {
		return errors.New("connection refused")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.delivered[job.ID]++
	if strings.HasPrefix(job.Destination, "sick") {
		o.times = append(o.times, time.Now())
	} else {
		o.latencies = append(o.latencies, time.Since(job.EnqueuedAt))
	}
	return nil
}

func (o *outage) enqueue(destination string, n int) {
	client, err := worker.NewClient(worker.ClientConfig{Broker: o.broker})
	if err != nil {
		o.t.Fatal(err)
	}
	batch := make([]worker.NewJob, n)
	for i := range batch {
		batch[i] = worker.NewJob{Kind: "call", ID: fmt.Sprintf("%s-%06d-%d", destination, i, time.Now().UnixMilli()), Destination: destination}
	}
	for _, r := range client.EnqueueMany(context.Background(), batch) {
		if r.Err != nil {
			o.t.Fatal(r.Err)
		}
	}
}

// trickle sends the healthy destination a job every 100 ms, while the sick one's backlog is worked off.
func (o *outage) trickle(length time.Duration) {
	for until := time.Now().Add(length); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		o.enqueue("well.example", 1)
	}
}

func (o *outage) worst() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.latencies) < 500 {
		o.t.Fatalf("only %d healthy jobs were delivered", len(o.latencies))
	}
	return slices.Max(o.latencies)
}

func (o *outage) count(prefix string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.delivered {
		if strings.HasPrefix(id, prefix) {
			n++
		}
	}
	return n
}

func (o *outage) checkDelivered(repaired time.Time) {
	if got := o.count("sick.example"); got != o.jobs {
		depth, _ := o.rig.dead.Depth(context.Background())
		dead, _ := o.rig.dead.Count(context.Background(), dlq.Filter{})
		o.t.Errorf("%d of %d jobs were delivered after the repair; %d dead, depth %+v", got, o.jobs, dead, depth)
	}
	for id, n := range o.delivered {
		if n != 1 {
			o.t.Errorf("job %s was delivered %d times", id, n)
		}
	}
	perSecond := make(map[int]int)
	for _, at := range o.times {
		perSecond[int(at.Sub(repaired)/time.Second)]++
	}
	first := slices.Min(seconds(perSecond))
	if perSecond[first] > 100 {
		o.t.Errorf("%d jobs hit the destination in the first second of its recovery: no ramp", perSecond[first])
	}
	for s, n := range perSecond {
		if n > 2500 {
			o.t.Errorf("%d jobs hit the destination in second %d of its recovery", n, s)
		}
	}
}

func seconds(m map[int]int) []int {
	var list []int
	for s := range m {
		list = append(list, s)
	}
	return list
}
