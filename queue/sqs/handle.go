package sqs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// handle is one delivery. It implements [queue.Handle].
type handle struct {
	q   *remote
	sub *subscription

	key        string // the broker's id of this message, which may be a copy
	id         string // the id of the first message
	message    queue.Message
	meta       meta
	group      string // as SQS knows it
	trace      string // X-Ray header, which goes along with copies
	moved      bool   // by a redrive policy
	receives   int    // of this copy, this one included
	attempts   int    // this one included
	deliveries int
	sent       time.Time // when this copy was sent; zero if unknown
	enqueued   time.Time // when the first one was

	chain *chain // of siblings that wait for this one; nil if there are none

	mu       sync.Mutex
	receipt  string    // the newest
	received time.Time // from when the 12 hours of that receipt count
	deadline time.Time
	settled  bool
	ending   bool // a call is under way that makes the message visible: it may be received again before the answer is here
	lost     bool // it was received again

	turn   sync.Mutex // one call at a time, so that none overtakes another
	open   *entry     // of an earlier call that ended before its answer
	copied bool       // a copy was confirmed, this message is only to be deleted
}

func (h *handle) newest() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.receipt
}

// ends is when the lease ends.
func (h *handle) ends() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

func (h *handle) live(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.settled && !h.ending && !h.lost && now.Before(h.deadline)
}

// supersede ends a lease whose message was received again.
func (h *handle) supersede() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = true
}

func (h *handle) isLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

func (h *handle) setEnding(ending bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = ending
}

func (h *handle) left(now time.Time) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return left(h.received, now)
}

// Extend implements [queue.Handle].
func (h *handle) Extend(ctx context.Context, d time.Duration) error {
	start := time.Now()
	ask := min(seconds(d), h.left(start))
	if ask <= 0 {
		return queue.ErrLeaseLost
	}
	h.chain.extend(ask, start.Add(d))
	if err := h.change(ctx, ask); err != nil {
		return h.failed(err)
	}
	h.prolong(start.Add(d))
	return nil
}

func (h *handle) prolong(deadline time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = deadline
}

// Settle implements [queue.Handle].
func (h *handle) Settle(ctx context.Context, s queue.Settlement) error {
	var err error
	switch s.Action {
	case queue.ActionAck:
		err = h.remove(ctx)
	case queue.ActionRetry:
		err = h.retry(ctx, s.Delay, s.Uncharged)
	case queue.ActionRelease:
		err = h.retry(ctx, 0, s.Uncharged)
	default:
		err = fmt.Errorf("unknown settlement %v", s.Action)
	}
	if err != nil {
		return h.failed(err)
	}
	h.finish()
	h.chain.next(s.Action == queue.ActionAck)
	return nil
}

// retry makes the message visible again after delay.
func (h *handle) retry(ctx context.Context, delay time.Duration, uncharged bool) error {
	if h.q.fifo {
		if delay > maxVisibility {
			return fmt.Errorf("delay %v on FIFO queue %q, which hides messages for at most %v: %w", delay, h.q.name, maxVisibility, queue.ErrDelayTooLong)
		}
		return h.giveUp(ctx, min(seconds(delay), h.left(time.Now())))
	}
	if h.isCopied() || uncharged || !h.canHide(delay, time.Now()) {
		return h.resend(ctx, delay, !uncharged)
	}
	err := h.giveUp(ctx, seconds(delay))
	if e, ok := asCallFailed(err); ok && e.fault == exceeded { // SQS knows better than we how long it can be hidden
		return h.resend(ctx, delay, true)
	}
	return err
}

// remove deletes the message.
func (h *handle) remove(ctx context.Context) error {
	return h.do(ctx, h.q.deletes, &entry{handle: h, until: h.ends()})
}

// giveUp makes the message visible again after that many seconds. Unlike with change, the lease is over when it succeeds.
func (h *handle) giveUp(ctx context.Context, seconds int32) error {
	h.setEnding(true)
	defer h.setEnding(false)
	return h.change(ctx, seconds)
}

// change makes the message invisible for that many seconds from now.
func (h *handle) change(ctx context.Context, seconds int32) error {
	return h.do(ctx, h.q.changes, &entry{handle: h, until: h.ends(), seconds: seconds})
}

// do carries e out, after what an earlier call may have left under way: they must not overtake each other.
func (h *handle) do(ctx context.Context, b *batcher, e *entry) error {
	h.turn.Lock()
	defer h.turn.Unlock()
	if err := h.catchUp(ctx); err != nil {
		return err
	}
	if h.isLost() {
		return &callFailed{fault: stale, err: queue.ErrLeaseLost}
	}
	if e.send != nil && h.copied { // by that earlier call
		return nil
	}
	done, err := b.do(ctx, e)
	if !done {
		h.open = e
	}
	if err != nil {
		return &callFailed{fault: e.faultIf(done), err: err}
	}
	h.copied = h.copied || e.send != nil
	return nil
}

// catchUp waits for the answer to what an earlier call left under way. The caller holds turn.
func (h *handle) catchUp(ctx context.Context) error {
	if h.open == nil {
		return nil
	}
	select {
	case <-h.open.done:
	case <-ctx.Done():
		return fmt.Errorf("wait for an earlier call on the message: %w", ctx.Err())
	}
	h.copied = h.copied || h.open.send != nil && h.open.err == nil
	h.open = nil
	return nil
}

// isCopied reports whether a copy was confirmed, as far as is known by now.
func (h *handle) isCopied() bool {
	h.turn.Lock()
	defer h.turn.Unlock()
	return h.copied
}

// failed frees what a lost lease held, and lets go of its siblings.
func (h *handle) failed(err error) error {
	if e, ok := asCallFailed(err); ok && e.fault == stale {
		h.finish()
		h.chain.next(false)
	}
	return err
}

// finish ends the hold.
func (h *handle) finish() {
	h.mu.Lock()
	h.settled = true
	h.mu.Unlock()
	h.q.forget(h)
	h.sub.slots.free(h)
}
