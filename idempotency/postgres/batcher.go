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

// batcher joins concurrent calls. A call that finds the batcher empty leaves at once; those that come while it is under way leave
// together after it, or as a second batch if they are many.
type batcher[Q any] struct {
	// answer answers items, which hold the answers then.
	answer func(items []Q)
	// astray is given items whose caller had stopped waiting when they held their answers.
	astray func(items []Q)
	max    int // items of a batch
	// crowd is how many waiting items start a second batch.
	crowd int

	mu      sync.Mutex
	waiting []*call[Q]
	items   int // of the waiting calls
	running int
	closed  bool
	landed  sync.WaitGroup
}

type call[Q any] struct {
	items []Q
	done  chan struct{}
	// Under the batcher's mutex: whether the caller has stopped waiting, and whether the items hold their answers.
	left, landed bool
}

// do returns when items hold their answers, or with an error if ctx is done or the batcher is closed. The items are the batch's then.
func (l *batcher[Q]) do(ctx context.Context, items []Q) error {
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

func (l *batcher[Q]) join(c *call[Q]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return unavailable(errClosed)
	}
	l.waiting = append(l.waiting, c)
	l.items += len(c.items)
	if l.running == 0 || l.running == 1 && l.items >= l.crowd {
		l.running++
		l.landed.Go(l.run)
	}
	return nil
}

// leave takes back a call, from a batch that is under way too. It reports whether the answers are there already.
func (l *batcher[Q]) leave(c *call[Q]) (landed bool) {
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

// deliver answers a call.
func (l *batcher[Q]) deliver(c *call[Q]) {
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
func (l *batcher[Q]) run() {
	for first := true; ; first = false {
		if !first {
			runtime.Gosched() // those who were just answered come again at once
		}
		calls := l.nextBatch()
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
		l.answer(items)
		for _, c := range calls {
			l.deliver(c)
		}
	}
}

// nextBatch takes the calls of the next batch, or ends the batches if there are none.
func (l *batcher[Q]) nextBatch() []*call[Q] {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, items := 0, 0
	for n < len(l.waiting) && (n == 0 || items+len(l.waiting[n].items) <= l.max) {
		items += len(l.waiting[n].items)
		n++
	}
	if n == 0 {
		l.running--
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
func (l *batcher[Q]) close() {
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
