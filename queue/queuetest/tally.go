package queuetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/caisson-go/caisson/queue"
)

// tally counts deliveries by message number. It is safe for concurrent use.
type tally struct {
	mu    sync.Mutex
	times map[string]int
	total int
}

func newTally() *tally { return &tally{times: map[string]int{}} }

func (t *tally) add(leases []*queue.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range leases {
		t.times[l.Headers[headerNumber]]++
		t.total++
	}
}

// ack acks leases and counts those.
func (t *tally) ack(ctx context.Context, leases []*queue.Lease) error {
	for _, l := range leases {
		if err := l.Ack(ctx); err != nil {
			return fmt.Errorf("ack of message %s: %w", l.Headers[headerNumber], err)
		}
	}
	t.add(leases)
	return nil
}

// count is how many deliveries were counted.
func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// check asserts that each of the messages 0 to n-1 was counted once and nothing else was.
func (t *tally) check(e *env, n int) {
	e.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	missing, doubled := 0, 0
	for i := range n {
		switch t.times[fmt.Sprint(i)] {
		case 0:
			missing++
		case 1:
		default:
			doubled++
		}
	}
	if missing > 0 || doubled > 0 || len(t.times)+missing > n {
		e.Errorf("of %d messages %d are lost, %d were delivered more than once; %d deliveries in all", n, missing, doubled, t.total)
	}
}
