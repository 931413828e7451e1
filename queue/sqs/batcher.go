package sqs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue"
)

// maxFlying is how many requests of one kind to one queue are under way at once. While they are, what is added waits and fills the next ones.
const maxFlying = 8

// oldBatchBytes is the most that a batch may measure where queues have the limits of old.
const oldBatchBytes = 256 << 10

// entry is one message's part of a batch.
type entry struct {
	send    *types.SendMessageBatchRequestEntry // of a send
	size    int
	handle  *handle // of a delete or change
	seconds int32
	until   time.Time // when the lease ends; nothing is sent after it. Zero for sends

	added time.Time
	done  chan struct{} // closed when the fields below are set
	id    string
	fault fault
	err   error
}

func (e *entry) finish(id string, f fault, err error) {
	e.id, e.fault, e.err = id, f, err
	close(e.done)
}

// batcher gathers entries of one action on one queue and sends them up to ten at a time: as soon as ten wait, or they fill a batch by size,
// or nobody is left who could add to them, or the first has waited for Linger, or on drain. Each caller hears what became of its own entry.
type batcher struct {
	q      *remote
	action string
	most   int // requests under way
	run    func(context.Context, []*entry)

	mu      sync.Mutex
	waiting []*entry
	bytes   int
	flying  int // requests
	aloft   int // entries of those
	timer   *time.Timer
	drained bool
}

func newBatcher(q *remote, action string, most int, run func(context.Context, []*entry)) *batcher {
	return &batcher{q: q, action: action, most: most, run: run}
}

// do adds e and waits until it is done. When ctx ends first, an entry that was not sent yet is taken back; one that was is left to itself,
// and do returns false.
func (b *batcher) do(ctx context.Context, e *entry) (done bool, err error) {
	b.add(e)
	return b.wait(ctx, e)
}

func (b *batcher) add(e *entry) {
	e.done = make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drained {
		e.finish("", refused, queue.ErrClosed)
		return
	}
	e.added = time.Now()
	b.waiting = append(b.waiting, e)
	b.bytes += e.size
	b.pump()
}

func (b *batcher) wait(ctx context.Context, e *entry) (done bool, err error) {
	select {
	case <-e.done:
		return true, e.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	if i := slices.Index(b.waiting, e); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.bytes -= e.size
		e.finish("", cancelled, fmt.Errorf("%s on queue %q was not sent: %w", b.action, b.q.name, ctx.Err()))
	}
	b.mu.Unlock()
	select {
	case <-e.done:
		return true, e.err
	default:
		return false, fmt.Errorf("%s on queue %q was not answered: %w", b.action, b.q.name, ctx.Err())
	}
}

// pump sends what is ripe. The caller holds mu.
func (b *batcher) pump() {
	for len(b.waiting) > 0 && b.flying < b.most {
		if wait := b.ripeIn(); wait > 0 {
			b.arm(wait)
			return
		}
		batch := b.cut()
		size := len(batch)
		b.flying++
		b.aloft += size
		b.q.b.callers.run(&b.q.b.wg, func() {
			b.run(b.q.b.base, batch)
			b.mu.Lock()
			defer b.mu.Unlock()
			b.flying--
			b.aloft -= size
			b.pump()
		})
	}
}

func (b *batcher) ripeIn() time.Duration {
	if b.drained || len(b.waiting) >= maxBatch || b.bytes >= b.batchBytes() || b.allWait() {
		return 0
	}
	return *b.q.b.cfg.Linger - time.Since(b.waiting[0].added)
}

// allWait reports whether nobody is left to wait for: every message of the queue that this process holds is being settled.
func (b *batcher) allWait() bool {
	if b.waiting[0].handle == nil {
		return false
	}
	b.q.mu.Lock()
	defer b.q.mu.Unlock()
	return len(b.waiting)+b.aloft >= len(b.q.held)
}

func (b *batcher) arm(wait time.Duration) {
	if b.timer != nil {
		b.timer.Reset(wait)
		return
	}
	b.timer = time.AfterFunc(wait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.pump()
	})
}

// batchBytes is the most that one request may carry. A queue whose own limit is the old one is of a server with the old one.
func (b *batcher) batchBytes() int {
	b.q.mu.Lock()
	defer b.q.mu.Unlock()
	return min(max(b.q.attrs.maxSize, oldBatchBytes), maxBatchBytes)
}

func (b *batcher) cut() []*entry {
	limit, size, n := b.batchBytes(), 0, 0
	for n < len(b.waiting) && n < maxBatch && (n == 0 || size+b.waiting[n].size <= limit) {
		size += b.waiting[n].size
		n++
	}
	batch := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.bytes -= size
	return batch
}

// drain sends everything now, and refuses what comes later.
func (b *batcher) drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drained = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.pump()
}

// newest is the handle to settle with: SQS may have handed the message over once more since the entry was made.
func (e *entry) newest() string { return e.handle.newest() }
