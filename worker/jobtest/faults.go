package jobtest

import (
	"context"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
)

// Part is something that a worker depends on.
type Part string

// The parts.
const (
	// PartBroker is the queue: publishing, receiving, extending and settling.
	PartBroker Part = "broker"
	// PartClaims is the idempotency store.
	PartClaims Part = "idempotency store"
	// PartDeadLetters is the store of dead letters and held jobs.
	PartDeadLetters Part = "dead-letter store"
)

// faults is what is broken now.
type faults struct {
	mu    sync.Mutex
	parts map[Part]bool
	down  map[string]bool // destinations
}

func (f *faults) broken(p Part) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.parts[p]
}

func (f *faults) set(p Part, broken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts == nil {
		f.parts = make(map[Part]bool)
	}
	f.parts[p] = broken
}

// Break makes a part answer that it is unavailable until [Bench.Repair]. What it holds stays.
func (b *Bench) Break(p Part) { b.setPart(p, true) }

// Repair ends [Bench.Break].
func (b *Bench) Repair(p Part) { b.setPart(p, false) }

func (b *Bench) setPart(p Part, broken bool) {
	b.faults.set(p, broken)
	b.stepper.interrupt()
	synctest.Wait()
}

// SetDown makes [Bench.Reach] fail for a destination, or work again. Handlers ask Reach where they would call the destination.
func (b *Bench) SetDown(destination string, down bool) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.down[pools.NormalizeDestination(destination)] = down
}

// Reach stands for a call to destination: it returns nil, or an error while the destination is down. It is safe for concurrent use.
func (b *Bench) Reach(destination string) error {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	if b.faults.down[pools.NormalizeDestination(destination)] {
		return fmt.Errorf("destination %s is down", destination)
	}
	return nil
}

// Force sets or, with breaker.OverrideNone, clears an override of a destination's breaker, in all workers and in those to come. What a
// worker takes while a destination is forced open it holds: it comes back some seconds after the override is cleared, so let them pass with
// [Bench.Advance].
func (b *Bench) Force(destination string, o breaker.Override) {
	b.mu.Lock()
	b.forced[destination] = o
	b.mu.Unlock()
	for _, c := range b.live() {
		c.worker.Destinations().Force(destination, time.Now(), o)
	}
}

// reforce gives a new worker the overrides of the others.
func (b *Bench) reforce(c *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for destination, o := range b.forced {
		c.worker.Destinations().Force(destination, time.Now(), o)
	}
}

// ExpireLease makes the broker take the message of a running job back, as if its lease had run out: it is visible at once, with the attempt
// that the broker counted, and its worker's lease is lost. It fails the test if no worker holds the job.
func (b *Bench) ExpireLease(job string) {
	b.t.Helper()
	for _, m := range b.ledger.running() {
		if m.job != job {
			continue
		}
		// Given back below the worker's lease, whose next call finds it lost.
		b.must("expire the lease of job "+job, m.lease.inner.Settle(context.Background(), queue.Settlement{Action: queue.ActionRelease}))
		b.ledger.returned(m.id, time.Now())
		synctest.Wait()
		return
	}
	b.t.Fatalf("jobtest: ExpireLease: no worker holds job %s; it is %s", job, b.Where(job))
}

// Duplicate puts a copy of a job's message into its queue, as brokers do that deliver at least once. It works for every job that was enqueued
// through the bench or is in a queue, also for one that is done.
func (b *Bench) Duplicate(job string) {
	b.t.Helper()
	name, m, ok := b.ledger.find(job)
	if !ok {
		b.t.Fatalf("jobtest: Duplicate: job %s was never enqueued through this bench", job)
	}
	w := &faultyBroker{Broker: b.broker, bench: b}
	b.must("duplicate job "+job, w.Publish(context.Background(), name, []queue.Publication{{Message: m}})[0].Err)
}

// find returns the message of a job and its queue.
func (l *ledger) find(job string) (name string, m queue.Message, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.pending {
		if p.job == job {
			return p.queue, p.Message, true
		}
	}
	for _, e := range l.enqueued {
		if e.ID == job {
			return e.Queue, e.message, true
		}
	}
	return "", queue.Message{}, false
}
