package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/worker"
)

// oneAtATime is a kind whose jobs wait for each other in the worker. It notes when each one ran.
func oneAtATime(keyed bool, length map[string]time.Duration, ran map[string][]time.Time) *worker.Registry {
	registry := worker.NewRegistry()
	cfg := worker.KindConfig{Bulkhead: 1, Waiting: new(1), Timeout: time.Hour, Keyed: &keyed}
	work(registry, "k", cfg, func(_ context.Context, job *worker.Job) error {
		ran[job.ID] = append(ran[job.ID], time.Now())
		time.Sleep(length[job.ID])
		return nil
	})
	return registry
}

// A deadline that passes while a job waits for its turn is as good as one that passed in the queue: expired work is not started.
func TestDeadlineThatPassesInTheWaitingRoom(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		ran := make(map[string][]time.Time)
		registry := oneAtATime(keyed, map[string]time.Duration{"a": time.Minute}, ran)
		inBubble(t, worker.Config{Registry: registry, Concurrency: 3}, func(b *bubble) {
			b.enqueue(worker.NewJob{Kind: "k", ID: "a"})
			b.after(time.Second)
			b.enqueue(worker.NewJob{Kind: "k", ID: "b", Deadline: time.Now().Add(30 * time.Second)})
			b.after(2 * time.Minute)
			e, err := b.dead.Get(b.ctx, dlq.EntryID("b", 0))
			if len(ran["b"]) != 0 || err != nil || e.Cause != dlq.CauseExpired || e.AttemptCount != 0 {
				t.Errorf("ran at %v; entry %+v, error %v", ran["b"], e, err)
			}
		})
	})
}

// An unkeyed job whose lease is lost while it waits for its turn is somebody else's by then: it must not start.
func TestLeaseThatIsLostInTheWaitingRoom(t *testing.T) {
	t.Parallel()
	ran := make(map[string][]time.Time)
	registry := oneAtATime(false, map[string]time.Duration{"a": 2 * time.Minute, "b": time.Minute}, ran)
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
		broker := queuetest.NewFaultBroker(b.broker, func(p queuetest.Point) queuetest.Fault {
			env, err := p.Message.Envelope()
			if p.Op == queuetest.OpExtend && err == nil && env.ID == "b" && time.Since(env.EnqueuedAt) < time.Minute {
				return queuetest.Fault{Before: queue.ErrUnavailable}
			}
			return queuetest.Fault{}
		})
		b.start(worker.Config{Registry: registry, Concurrency: 3, Broker: broker})
		b.enqueue(worker.NewJob{Kind: "k", ID: "a"})
		b.after(time.Second)
		b.enqueue(worker.NewJob{Kind: "k", ID: "b"})
		b.after(20 * time.Minute)
		if len(ran["b"]) != 1 || len(b.settled("b")) < 2 {
			t.Errorf("b ran at %v, after %d settlements", ran["b"], len(b.settled("b")))
		}
		for _, s := range b.settled("b") {
			if s.Handle > 0 && s.SettleErr != nil {
				t.Errorf("b ran on a lost lease: %v", s.SettleErr)
			}
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if err := b.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Jobs that find the pool full for long must not cycle through the broker all the while.
func TestFullPoolIsNoHotLoop(t *testing.T) {
	t.Parallel()
	ran := make(map[string][]time.Time)
	registry := oneAtATime(true, map[string]time.Duration{"a": 10 * time.Minute}, ran)
	inBubble(t, worker.Config{Registry: registry, Concurrency: 3}, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "k", ID: "a"})
		b.after(time.Second)
		for _, id := range []string{"b", "c", "d", "e"} { // one of them gets the room
			b.enqueue(worker.NewJob{Kind: "k", ID: id})
		}
		b.after(9 * time.Minute)
		if n := len(b.settled("")); n > 4*25 {
			t.Errorf("%d deferrals of four jobs in nine minutes", n)
		}
		b.after(10 * time.Minute)
		if len(ran) != 5 {
			t.Errorf("ran %v", ran)
		}
	})
}

// Kinds without a size share the slots that sized kinds leave: however many long jobs they have, a sized kind's job starts at once.
func TestUnsizedKindsLeaveTheSlotsOfSizedOnes(t *testing.T) {
	t.Parallel()
	var running, most, latency atomic.Int64
	registry := worker.NewRegistry()
	long := func(context.Context, *worker.Job) error {
		n := running.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(5 * time.Minute)
		running.Add(-1)
		return nil
	}
	work(registry, "a", worker.KindConfig{Timeout: time.Hour}, long)
	work(registry, "b", worker.KindConfig{Timeout: time.Hour}, long)
	work(registry, "sized", worker.KindConfig{Bulkhead: 2}, func(_ context.Context, job *worker.Job) error {
		latency.Store(int64(time.Since(job.EnqueuedAt)))
		return nil
	})
	inBubble(t, worker.Config{Registry: registry, Concurrency: 5}, func(b *bubble) {
		for range 10 {
			b.enqueue(worker.NewJob{Kind: "a"})
			b.enqueue(worker.NewJob{Kind: "b"})
		}
		b.after(time.Minute)
		b.enqueue(worker.NewJob{Kind: "sized"})
		b.after(time.Minute)
		if most.Load() != 3 || len(b.settled("")) == 0 || latency.Load() > int64(time.Second) {
			t.Errorf("%d long jobs at once beside 2 reserved slots, the sized kind's job waited %s", most.Load(), time.Duration(latency.Load()))
		}
		b.after(2 * time.Hour)
	})
}
