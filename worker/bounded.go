package worker

import (
	"context"
	"sync"
	"time"
)

// bounded hands out a context that ends no sooner than least from now and no later than twice that. All calls to stores and broker share it,
// so that bounding a call costs no timer and no allocation.
type bounded struct {
	parent context.Context
	least  time.Duration

	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Time
}

func newBounded(parent context.Context, least time.Duration) *bounded {
	return &bounded{parent: parent, least: least}
}

func (b *bounded) context() context.Context {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.Sub(now) < b.least {
		// The former context is left to its own deadline: calls may still be under way with it.
		b.until = now.Add(2 * b.least)
		b.ctx, b.cancel = context.WithDeadline(b.parent, b.until)
	}
	return b.ctx
}

// close ends the newest context.
func (b *bounded) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil {
		b.cancel()
	}
}
