package worker

import (
	"context"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
)

// storeHealth keeps keyed jobs away from an idempotency store that cannot be asked. Where every kind needs the store, leasing stops; else the keyed
// jobs alone are put back, and the unkeyed ones go on.
type storeHealth struct {
	ping      func(context.Context) error // nil if there is no store
	observe   func(Event)
	pausesAll bool // every kind is keyed

	failures chan struct{} // holds a token after the store went away

	mu        sync.Mutex
	down      error
	since     time.Time
	available chan struct{} // closed while the store answers
}

const (
	minStoreDelay = 5 * time.Second
	maxStoreDelay = time.Minute
)

func newStoreHealth(observe func(Event)) *storeHealth {
	g := &storeHealth{observe: observe, failures: make(chan struct{}, 1), available: make(chan struct{})}
	close(g.available)
	return g
}

// failed counts the store as away.
func (g *storeHealth) failed(err error) {
	g.mu.Lock()
	first := g.down == nil
	g.down = err
	if first {
		g.since, g.available = time.Now(), make(chan struct{})
	}
	g.mu.Unlock()
	if first {
		g.observe(&Paused{What: "store", Err: err})
		select {
		case g.failures <- struct{}{}:
		default:
		}
	}
}

// err is why the store counts as away, or nil.
func (g *storeHealth) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.down
}

// delay is how long a keyed job is put back while the store is away: as long as it has been so, from 5 s to a minute, so that a long outage
// does not cycle jobs through the broker.
func (g *storeHealth) delay() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return jitter(min(max(time.Since(g.since), minStoreDelay), maxStoreDelay))
}

// wait returns true once leasing makes sense, and false when ctx is done.
func (g *storeHealth) wait(ctx context.Context) bool {
	if !g.pausesAll {
		return true
	}
	g.mu.Lock()
	open := g.available
	g.mu.Unlock()
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

// probe asks a store that failed again and again until it answers, until ctx is done.
func (g *storeHealth) probe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.failures:
		}
		for delay := 100 * time.Millisecond; g.err() != nil; delay = min(2*delay, 5*time.Second) {
			if !pause.For(ctx, jitter(delay)) {
				return
			}
			asking, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := g.ping(asking)
			cancel()
			if err == nil {
				g.recovered()
			}
		}
	}
}

func (g *storeHealth) recovered() {
	g.mu.Lock()
	was := g.down
	g.down = nil
	if was != nil {
		close(g.available)
	}
	g.mu.Unlock()
	if was != nil {
		g.observe(&Paused{What: "store"})
	}
}
