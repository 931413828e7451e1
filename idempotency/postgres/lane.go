package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/caisson-go/caisson/idempotency"
)

// errClosed is the cause of calls after Close.
var errClosed = errors.New("the store is closed")

// lane joins concurrent calls. A call that finds the lane empty leaves at once; those that come while it is under way leave
// together after it, or as a second flight if they are many.
type lane[Q any] struct {
	// fly answers items, which hold the answers then.
	fly func(items []Q)
	// astray is given items whose caller had stopped waiting when they held their answers.
	astray func(items []Q)
	max    int // items of a flight
	// crowd is how many waiting items start a second flight.
	crowd int

	mu      sync.Mutex
	waiting []*call[Q]
	items   int // of the waiting calls
	flights int
	closed  bool
	landed  sync.WaitGroup
}

type call[Q any] struct {
	items []Q
	done  chan struct{}
	// Under the lane's mutex: whether the caller has stopped waiting, and whether the items hold their answers.
	left, landed bool
}

// do returns when items hold their answers, or with an error if ctx is done or the lane is closed. The items are the flight's then.
func (l *lane[Q]) do(ctx context.Context, items []Q) error {
	c := &call[Q]{items: items, done: make(chan struct{})}
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	if err := l.join(c); err != nil {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		if l.leave(c) {
			return nil
		}
		return unavailable(context.Cause(ctx))
	}
}

func (l *lane[Q]) join(c *call[Q]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return unavailable(errClosed)
	}
	l.waiting = append(l.waiting, c)
	l.items += len(c.items)
	if l.flights == 0 || l.flights == 1 && l.items >= l.crowd {
		l.flights++
		l.landed.Go(l.run)
	}
	return nil
}

// leave takes back a call, from a flight that is under way too. It reports whether the answers are there already.
func (l *lane[Q]) leave(c *call[Q]) (landed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.left = !c.landed
	for i, w := range l.waiting {
		if w == c {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			l.items -= len(c.items)
			break
		}
	}
	return c.landed
}

// land answers a call.
func (l *lane[Q]) land(c *call[Q]) {
	l.mu.Lock()
	c.landed = true
	left := c.left
	l.mu.Unlock()
	if left && l.astray != nil {
		l.astray(c.items)
	}
	close(c.done)
}

// run flies until nobody waits.
func (l *lane[Q]) run() {
	for first := true; ; first = false {
		if !first {
			runtime.Gosched() // those who were just answered come again at once
		}
		calls := l.board()
		if calls == nil {
			return
		}
		items := calls[0].items
		if len(calls) > 1 {
			items = nil
			for _, c := range calls {
				items = append(items, c.items...)
			}
		}
		l.fly(items)
		for _, c := range calls {
			l.land(c)
		}
	}
}

// board takes the calls of the next flight, or ends the flights if there are none.
func (l *lane[Q]) board() []*call[Q] {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, items := 0, 0
	for n < len(l.waiting) && (n == 0 || items+len(l.waiting[n].items) <= l.max) {
		items += len(l.waiting[n].items)
		n++
	}
	if n == 0 {
		l.flights--
		return nil
	}
	calls := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	if len(l.waiting) == 0 {
		l.waiting = nil
	}
	l.items -= items
	return calls
}

// close refuses further calls and waits for those that are under way.
func (l *lane[Q]) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.landed.Wait()
}

// unavailable marks errors after which a call may be repeated.
func unavailable(err error) error {
	if err == nil || errors.Is(err, idempotency.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", idempotency.ErrUnavailable, err)
}
