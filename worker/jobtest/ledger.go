package jobtest

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// ledger is what the bench has seen: every message that a queue holds, and every event of a worker that was alive.
type ledger struct {
	mu       sync.Mutex
	pending  map[string]*message // by the broker's id
	enqueued []Enqueued
	started  map[string][]time.Time // of handlers by job
	settled  []worker.Settled
	changed  chan struct{} // closed and replaced when a message is settled or an event told
}

// message is one message in a queue.
type message struct {
	queue.Message
	id    string // the broker's
	job   string // empty if it cannot be decoded
	queue string
	due   time.Time // when it is visible; while it is leased, when it would be if its worker died now
	// process has leased it, since then, until due; nil if nobody has.
	process *process
	since   time.Time
	lease   *handle
}

func (m *message) leased() bool { return m.process != nil && time.Now().Before(m.due) }

func newLedger() *ledger {
	return &ledger{pending: make(map[string]*message), started: make(map[string][]time.Time), changed: make(chan struct{})}
}

func (l *ledger) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// changes returns a channel that is closed at the next change.
func (l *ledger) changes() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func jobOf(m queue.Message) string {
	env, err := m.Envelope()
	if err != nil {
		return ""
	}
	return env.ID
}

func (l *ledger) published(name, id string, p queue.Publication, producer bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.pending[id]
	if m == nil { // else it was received before Publish returned
		l.pending[id] = &message{Message: p.Message, id: id, job: jobOf(p.Message), queue: name, due: time.Now().Add(p.Delay)}
	}
	if env, err := p.Envelope(); err == nil && producer {
		l.enqueued = append(l.enqueued, Enqueued{
			ID: env.ID, Kind: env.Kind, Queue: name, Key: env.Key, Destination: env.Destination, Payload: p.Body, Headers: env.Headers,
			NotBefore: env.NotBefore, Deadline: env.Deadline, message: p.Message,
		})
	}
	l.notify()
}

func (l *ledger) received(h *handle, lease *queue.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.pending[lease.ID]
	if m == nil {
		m = &message{Message: lease.Message, id: lease.ID, job: jobOf(lease.Message), queue: lease.Queue}
		l.pending[lease.ID] = m
	}
	m.process, m.since, m.lease, m.due = h.process, time.Now(), h, lease.Deadline()
}

func (l *ledger) extended(id string, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.pending[id]; m != nil {
		m.due = due
	}
}

// lost is a lease that the broker took back. The message may have a new one.
func (l *ledger) lost(h *handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.pending[h.lease.ID]; m != nil && m.lease == h {
		m.process, m.lease, m.due = nil, nil, time.Now()
		l.notify()
	}
}

// returned is a message put back; acked one that left the queue.
func (l *ledger) returned(id string, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.pending[id]; m != nil {
		m.process, m.lease, m.due = nil, nil, due
	}
	l.notify()
}

func (l *ledger) acked(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, id)
	l.notify()
}

// crashed leaves the messages of a dead worker to the ends of their leases.
func (l *ledger) crashed(c *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.pending {
		if m.process == c {
			m.process, m.lease = nil, nil
		}
	}
	l.notify()
}

// waiting returns the messages that no live worker holds, the next due first.
func (l *ledger) waiting() []message {
	return l.list(func(m *message) bool { return !m.leased() })
}

// running returns the messages that a live worker holds.
func (l *ledger) running() []message {
	return l.list((*message).leased)
}

func (l *ledger) list(want func(*message) bool) (list []message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.pending {
		if want(m) {
			list = append(list, *m)
		}
	}
	slices.SortFunc(list, func(a, b message) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(len(a.id), len(b.id)), cmp.Compare(a.id, b.id))
	})
	return list
}

// observer records the events of one worker as long as it lives, and hands them on.
type observer struct {
	ledger  *ledger
	process *process
	next    []worker.Observer
}

// Observe implements [worker.Observer].
func (o *observer) Observe(event worker.Event) {
	if o.process.alive.Err() != nil {
		return
	}
	o.ledger.observe(event)
	for _, next := range o.next {
		next.Observe(event)
	}
}

func (l *ledger) observe(event worker.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := event.(type) {
	case *worker.Started:
		l.started[e.Job.ID] = append(l.started[e.Job.ID], time.Now())
	case *worker.Settled:
		l.settled = append(l.settled, *e)
		l.notify()
	}
}
