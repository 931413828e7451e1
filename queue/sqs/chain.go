package sqs

import (
	"context"
	"slices"
	"sync"
	"time"
)

// chain holds messages of one FIFO group that came together, behind the one that was handed out. Each is handed out when its predecessor was
// acked. When that was retried, released or lost, the rest is given back unrun. A nil chain is empty.
type chain struct {
	sub *subscription

	mu      sync.Mutex
	waiting []*handle
}

// extend keeps those that wait as long as their head. It does not wait for the answer: what was not extended is found at its deadline.
func (c *chain) extend(seconds int32, deadline time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	waiting := slices.Clone(c.waiting)
	c.mu.Unlock()
	for _, h := range waiting {
		c.sub.q.b.background(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			if h.change(ctx, min(seconds, h.left(time.Now()))) == nil {
				h.prolong(deadline)
			}
		})
	}
}

// chainMargin is what must be left of the lease of a message that is handed out.
const chainMargin = time.Second

// next hands out the next one if its predecessor was acked, else gives all back.
func (c *chain) next(acked bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	waiting := c.waiting
	if acked && len(waiting) > 0 && !c.sub.isClosed() && waiting[0].live(time.Now().Add(chainMargin)) {
		c.waiting = waiting[1:]
		c.mu.Unlock()
		c.sub.arrive(waiting[:1])
		return
	}
	c.waiting = nil
	c.mu.Unlock()
	c.sub.giveBack(waiting)
}
