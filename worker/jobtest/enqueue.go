package jobtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// Enqueued is a job as it was enqueued.
type Enqueued struct {
	ID, Kind, Queue, Key, Destination string
	Payload                           []byte
	Headers                           map[string]string
	// NotBefore is when it is due; zero means at once.
	NotBefore time.Time
	Deadline  time.Time

	message queue.Message
}

// Enqueue puts a job into its queue and returns its id. Nothing runs yet.
func (b *Bench) Enqueue(job worker.NewJob) string {
	b.t.Helper()
	id, err := b.client.Enqueue(context.Background(), job)
	b.must("enqueue", err)
	return id
}

// EnqueueRaw puts a message into a queue as a foreign producer would, without an envelope unless m has one, and returns the broker's id. An
// empty name means the worker's first queue.
func (b *Bench) EnqueueRaw(name string, m queue.Message) string {
	b.t.Helper()
	if name == "" {
		name = b.cfg.Worker.Queues[0].Name
	}
	r := b.Broker().Publish(context.Background(), name, []queue.Publication{{Message: m}})[0]
	b.must("enqueue a raw message", r.Err)
	return r.ID
}

// Enqueued returns the jobs of a kind that were enqueued so far, by the test or by the code under test, oldest first.
func (b *Bench) Enqueued(kind string) []Enqueued {
	var list []Enqueued
	for _, e := range b.ledger.allEnqueued() {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// EnqueuedOne returns the only job of a kind that was enqueued so far, and fails the test if there is none or more than one.
func (b *Bench) EnqueuedOne(kind string) Enqueued {
	b.t.Helper()
	list := b.Enqueued(kind)
	if len(list) != 1 {
		b.t.Fatalf("jobtest: expected exactly one job of kind %q to be enqueued, found %d; enqueued so far: %s", kind, len(list), b.ledger.summary())
	}
	return list[0]
}

func (l *ledger) allEnqueued() []Enqueued {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Enqueued(nil), l.enqueued...)
}

// summary counts what was enqueued by kind, in order of appearance.
func (l *ledger) summary() string {
	counts := make(map[string]int)
	var kinds []string
	for _, e := range l.allEnqueued() {
		if counts[e.Kind] == 0 {
			kinds = append(kinds, e.Kind)
		}
		counts[e.Kind]++
	}
	if len(kinds) == 0 {
		return "nothing"
	}
	for i, k := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[k], k)
	}
	return strings.Join(kinds, ", ")
}
