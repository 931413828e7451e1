package dlqtest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// Sent is one confirmed message.
type Sent struct {
	queue.Publication
	Queue string
	At    time.Time
}

// Broker is a [dlq.Broker] that records what it confirms, and fails or calls back as told.
type Broker struct {
	mu    sync.Mutex
	seen  int
	Calls int
	Sizes []int // bytes of each call
	Sent  []Sent
	// Fail returns the error for the nth publication, counted from 1.
	Fail func(queue string, n int) error
	// Then runs after a message was confirmed, before Publish returns.
	Then func(s Sent)
}

// Publish confirms or fails.
func (b *Broker) Publish(_ context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Calls++
	size := 0
	results := make([]queue.PublishResult, len(pubs))
	for i, p := range pubs {
		size += len(p.Body)
		b.seen++
		if b.Fail != nil {
			if err := b.Fail(name, b.seen); err != nil {
				results[i].Err = err
				continue
			}
		}
		p.Headers = maps.Clone(p.Headers)
		s := Sent{p, name, time.Now()}
		b.Sent = append(b.Sent, s)
		if b.Then != nil {
			b.Then(s)
		}
	}
	b.Sizes = append(b.Sizes, size)
	return results
}

// Jobs counts the confirmed messages by job and run.
func (b *Broker) Jobs(t testing.TB) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, s := range b.Sent {
		env, err := s.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		counts[dlq.EntryID(env.ID, env.Run)]++
	}
	return counts
}

// WantDoubled fails unless each of job-0 to job-(n-1) was published once, or twice for at most limit of them: a crash repeats one chunk.
func WantDoubled(t testing.TB, published map[string]int, n, limit int) {
	t.Helper()
	doubled := 0
	for i := range n {
		switch id := fmt.Sprintf("job-%d", i); published[id] {
		case 1:
		case 2:
			doubled++
		default:
			t.Errorf("%s was published %d times", id, published[id])
		}
	}
	if doubled > limit {
		t.Errorf("%d jobs were doubled, more than one chunk of %d", doubled, limit)
	}
}
