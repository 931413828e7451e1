package outbox

import (
	"sync"
	"time"
)

// pauses remembers the queues that take nothing at present. It is safe for concurrent use.
type pauses struct {
	mu     sync.Mutex
	queues map[string]refusal
}

type refusal struct {
	until    time.Time
	failures int
}

func newPauses() *pauses { return &pauses{queues: make(map[string]refusal)} }

// failed pauses a queue, longer each time, and reports whether it is the first time in a row.
func (p *pauses) failed(queue string, now time.Time) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[queue]
	if q.until.After(now) {
		return false // another loop has met the same failure
	}
	q.failures++
	q.until = now.Add(growing(q.failures))
	p.queues[queue] = q
	return q.failures == 1
}

// worked ends a queue's pause, and reports whether there was one.
func (p *pauses) worked(queue string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.queues[queue]
	delete(p.queues, queue)
	return ok
}

// now returns the queues to leave alone, never nil.
func (p *pauses) now(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := []string{}
	for name, q := range p.queues {
		if q.until.After(now) {
			names = append(names, name)
		}
	}
	return names
}

// next returns how long the first pause still lasts, zero if there is none.
func (p *pauses) next(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first time.Duration
	for _, q := range p.queues {
		if left := q.until.Sub(now); left > 0 && (first == 0 || left < first) {
			first = left
		}
	}
	return first
}
