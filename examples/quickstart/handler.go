package main

import (
	"context"
	"sync"

	"github.com/caisson-go/caisson/worker"
)

// Seen is the payload of the handler of our own: which event came in.
type Seen struct {
	ID    string `json:"id"`
	Event string `json:"event"`
}

// countEvent is a kind of our own, shared by those who enqueue and those who handle. Its key makes a job that is enqueued twice run once.
var countEvent = worker.Kind[Seen]{
	Name:   "event.count",
	Key:    func(s Seen) string { return "count:" + s.ID },
	Config: worker.KindConfig{MaxAttempts: 3},
}

// tally counts events by name.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	total  int
}

// count is a handler: a plain function of its payload.
func (t *tally) count(_ context.Context, s Seen) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]int)
	}
	t.counts[s.Event]++
	t.total++
	return nil
}

func (t *tally) sum() (total, names int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total, len(t.counts)
}
