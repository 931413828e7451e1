package pools

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// ErrFull means that a bulkhead has no permit and no place in the wait queue for one.
var ErrFull = errors.New("bulkhead full: no permit and no place in the wait queue")

// BulkheadConfig sizes a bulkhead.
type BulkheadConfig struct {
	// Size is how many permits there are. At least 1.
	Size int
	// Waiting is how many callers may wait for a permit. Zero means none.
	Waiting int
}

func (c BulkheadConfig) validate() error {
	switch {
	case c.Size < 1:
		return fmt.Errorf("bulkhead size %d: use at least 1", c.Size)
	case c.Waiting < 0:
		return fmt.Errorf("bulkhead wait queue %d: use 0 for none, or a positive number", c.Waiting)
	}
	return nil
}

// BulkheadSize derives a size from calls per second, how long a call takes (the 99th percentile) and a margin such as 2
// (Little's law), rounded up; at least 1.
func BulkheadSize(rate float64, p99 time.Duration, margin float64) int {
	n := math.Ceil(rate * p99.Seconds() * margin)
	if !(n > 1) {
		return 1
	}
	return int(min(n, math.MaxInt32))
}

// Bulkhead bounds how many calls run at once, with a bounded wait queue in front. It is safe for concurrent use.
type Bulkhead struct {
	mu        sync.Mutex
	size      int
	queueSize int
	inUse     int
	waiters   list.List // of waiter, by class and then in order
	rejected  uint64
}

// waiter is one caller in the wait queue.
type waiter struct {
	class   Class
	granted chan struct{} // closed when it owns a permit
}

// NewBulkhead returns an empty bulkhead.
func NewBulkhead(cfg BulkheadConfig) (*Bulkhead, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Bulkhead{size: cfg.Size, queueSize: cfg.Waiting}, nil
}

// TryAcquire takes a permit if one is free. It never overtakes a caller who waits.
func (b *Bulkhead) TryAcquire() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.free(0) {
		b.rejected++
		return false
	}
	b.inUse++
	return true
}

// Acquire takes a permit, by class and then first come, first served. It waits in the queue until there is one or ctx is done; then it
// returns ctx's error and holds nothing. It returns [ErrFull] at once when the queue is full. The sheddable classes leave part of
// the permits and of the queue to those above them.
func (b *Bulkhead) Acquire(ctx context.Context, class Class) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	if b.free(class) {
		b.inUse++
		b.mu.Unlock()
		return nil
	}
	if !b.canWait(class) {
		b.rejected++
		b.mu.Unlock()
		return ErrFull
	}
	granted := make(chan struct{})
	place := b.join(waiter{class: class, granted: granted})
	b.mu.Unlock()

	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-granted: // both at once: pass the permit on
		b.inUse--
		b.grant()
	default:
		b.waiters.Remove(place)
	}
	return ctx.Err()
}

// Release gives a permit back. It panics if none is out: that is a bug which would let too many calls run.
func (b *Bulkhead) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inUse == 0 {
		panic("pools: Bulkhead.Release without a permit")
	}
	b.inUse--
	b.grant()
}

// Free reports whether TryAcquire would succeed. It takes nothing.
func (b *Bulkhead) Free() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free(0)
}

// Available reports whether Acquire would not return [ErrFull]: a permit or a place in the queue is free.
func (b *Bulkhead) Available(class Class) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free(class) || b.canWait(class)
}

// Resize changes the sizes of bulkhead and queue. When it shrinks, permits that are out and callers that wait keep what they have; when it grows,
// waiting callers get the new permits.
func (b *Bulkhead) Resize(cfg BulkheadConfig) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size, b.queueSize = cfg.Size, cfg.Waiting
	b.grant()
	return nil
}

// free needs no look at those who wait: grant leaves no permit free to a class while one of it, or before it, waits.
func (b *Bulkhead) free(class Class) bool { return b.inUse < b.part(class, b.size) }

func (b *Bulkhead) canWait(class Class) bool { return b.waiters.Len() < b.part(class, b.queueSize) }

func (b *Bulkhead) part(class Class, n int) int {
	return int(class.of(uint32(min(n, math.MaxInt32)))) //nolint:gosec // not negative
}

// join puts w behind those of its class.
func (b *Bulkhead) join(w waiter) *list.Element {
	for e := b.waiters.Back(); e != nil; e = e.Prev() {
		if e.Value.(waiter).class <= w.class {
			return b.waiters.InsertAfter(w, e)
		}
	}
	return b.waiters.PushFront(w)
}

// grant hands free permits to those who wait longest, class by class. Where there is none for the first there is none for those behind.
func (b *Bulkhead) grant() {
	for e := b.waiters.Front(); e != nil && b.free(e.Value.(waiter).class); e = b.waiters.Front() {
		close(b.waiters.Remove(e).(waiter).granted)
		b.inUse++
	}
}

// BulkheadSnapshot describes a bulkhead for display.
type BulkheadSnapshot struct {
	Size      int `json:"size"`
	InUse     int `json:"in_use"` // above Size for a while after it shrank
	QueueSize int `json:"wait_queue"`
	Waiting   int `json:"waiting"`
	// Rejected counts the calls that found neither a permit nor, where they would have waited, a place in the queue.
	Rejected uint64 `json:"rejected"`
}

// Snapshot describes the bulkhead.
func (b *Bulkhead) Snapshot() BulkheadSnapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BulkheadSnapshot{Size: b.size, InUse: b.inUse, QueueSize: b.queueSize, Waiting: b.waiters.Len(), Rejected: b.rejected}
}
