package worker_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// bubble is a worker on an in-memory rig in virtual time, with what it told its observer.
type bubble struct {
	*rig
	t       *testing.T
	w       *worker.Worker
	stopRun context.CancelFunc
	ended   chan error
	also    worker.Observer
	unkeyed bool // no store for claims

	mu     sync.Mutex
	events []worker.Event
}

// inBubble runs fn beside a running worker in a synctest bubble, then stops the worker and wants a clean end.
func inBubble(t *testing.T, cfg worker.Config, fn func(b *bubble)) {
	t.Helper()
	inBubbleObservedBy(t, cfg, nil, fn)
}

// inBubbleObservedBy is inBubble with one more observer.
func inBubbleObservedBy(t *testing.T, cfg worker.Config, also worker.Observer, fn func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1), also: also}
		b.start(cfg)
		fn(b)
		if err := b.stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		if err := b.broker.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func (b *bubble) start(cfg worker.Config) {
	b.t.Helper()
	if cfg.Broker == nil {
		cfg.Broker = b.broker
	}
	if cfg.DeadLetters == nil {
		cfg.DeadLetters = b.dead
	}
	cfg.Observers = []worker.Observer{b, b.also}
	if cfg.Store == nil && !b.unkeyed {
		cfg.Store = b.claims
	}
	w, err := worker.New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.w, b.stopRun = w, cancel
	go func() { b.ended <- w.Run(ctx) }()
	synctest.Wait()
}

func (b *bubble) stop() error {
	b.stopRun()
	return <-b.ended
}

// Observe implements worker.Observer.
func (b *bubble) Observe(e worker.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// settled returns the settlements so far, those of one job if id is not empty.
func (b *bubble) settled(id string) []*worker.Settled {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*worker.Settled
	for _, e := range b.events {
		if s, ok := e.(*worker.Settled); ok && (id == "" || s.Job != nil && s.Job.ID == id) {
			list = append(list, s)
		}
	}
	return list
}

func (b *bubble) enqueue(job worker.NewJob) string {
	b.t.Helper()
	id, err := b.client(b.t).Enqueue(context.Background(), job)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// publish puts a message into the queue as it is.
func (b *bubble) publish(m queue.Message) {
	b.t.Helper()
	if err := b.broker.Publish(context.Background(), worker.DefaultQueue, []queue.Publication{{Message: m}})[0].Err; err != nil {
		b.t.Fatal(err)
	}
}

// after lets virtual time pass and everything come to rest.
func (b *bubble) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
