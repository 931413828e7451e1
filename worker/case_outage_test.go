package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// A broker that goes away is told of once, not at each try, and so is its return, also when the queue is empty then.
func TestBrokerOutageIsToldOnce(t *testing.T) {
	t.Parallel()
	watch := &pauses{}
	cfg := jobtest.Config{Worker: worker.Config{Observers: []worker.Observer{watch}}}
	inBench(t, cfg, worker.KindConfig{}, func(context.Context, *worker.Job) error { return nil }, func(t *testing.T, b *jobtest.Bench) {
		for outage := range int64(3) {
			b.Break(jobtest.PartBroker)
			b.Advance(time.Minute)
			if watch.paused.Load() != outage+1 || watch.resumed.Load() != outage || b.Worker().Ready() == nil {
				t.Fatalf("outage %d: paused %d times, resumed %d times, ready: %v", outage, watch.paused.Load(), watch.resumed.Load(), b.Worker().Ready())
			}
			b.Repair(jobtest.PartBroker)
			b.Advance(3 * time.Second)
			if watch.resumed.Load() != outage+1 || b.Worker().Ready() != nil {
				t.Fatalf("after outage %d: resumed %d times, ready: %v", outage, watch.resumed.Load(), b.Worker().Ready())
			}
		}
		id := b.Enqueue(worker.NewJob{Kind: "job"})
		b.Drain()
		calledOnce(t, b, id)
	})
}

// pauses counts how often leasing paused and resumed, what was settled, and what was put back for want of a store.
type pauses struct{ paused, resumed, settled, deferred atomic.Int64 }

func (p *pauses) Observe(e worker.Event) {
	switch e := e.(type) {
	case *worker.Paused:
		if e.Err != nil {
			p.paused.Add(1)
		} else {
			p.resumed.Add(1)
		}
	case *worker.Settled:
		p.settled.Add(1)
		if e.Reason == worker.ReasonStoreUnavailable {
			p.deferred.Add(1)
		}
	}
}
