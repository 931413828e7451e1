package jobtest

import (
	"context"
	"sync"
)

// stepper stands before every Receive: closed, open for all, or open for a number of messages of one queue.
type stepper struct {
	mu      sync.Mutex
	open    bool
	queue   string          // while permits are given: the queue that they are for
	permits int             // messages that may still be taken from queue
	period  context.Context // ends when the gate changes
	end     context.CancelFunc
}

// enter waits until the gate lets messages of queue through. It returns how many of most, and a context that ends when that may have changed.
func (g *stepper) enter(ctx context.Context, queue string, most int) (int, context.Context, error) {
	for {
		g.mu.Lock()
		period := g.current()
		n := 0
		switch {
		case g.open:
			n = most
		case g.queue == queue && g.permits > 0:
			n = min(most, g.permits)
			g.permits -= n
		}
		g.mu.Unlock()
		if n > 0 {
			return n, period, nil
		}
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-period.Done():
		}
	}
}

// unused gives permits back that found no message. period is what enter returned with them: those of an earlier one are gone.
func (g *stepper) unused(period context.Context, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n == 0 || g.open || period.Err() != nil {
		return
	}
	g.permits += n
	g.next()
}

func (g *stepper) set(open bool, queue string, permits int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.queue, g.permits = open, queue, permits
	g.next()
}

// openAll lets everything through.
func (g *stepper) openAll() { g.set(true, "", 0) }

// admit lets one message of queue through.
func (g *stepper) admit(queue string) { g.set(false, queue, 1) }

// shut lets nothing through; receives under way return.
func (g *stepper) shut() { g.set(false, "", 0) }

// interrupt makes receives under way look again.
func (g *stepper) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next()
}

func (g *stepper) current() context.Context {
	if g.period == nil {
		g.period, g.end = context.WithCancel(context.Background())
	}
	return g.period
}

func (g *stepper) next() {
	if g.end != nil {
		g.end()
	}
	g.period, g.end = nil, nil
}
