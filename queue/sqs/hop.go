package sqs

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// isEarly reports whether the message is on its way to a due time that SQS could not delay it to.
func (h *handle) isEarly() bool { return h.meta.DueMS != 0 && !h.q.fifo && !h.q.dlq }

// hop brings the message closer to its due time. No attempt is spent by that, so what is delivered in the end is a copy that has not been
// received before: nobody can tell a hop's receive from a real one.
func (h *handle) hop(ctx context.Context) error {
	if h.isCopied() {
		return h.drop(ctx)
	}
	now := time.Now()
	m := h.meta
	remaining := time.UnixMilli(m.DueMS).Sub(now)
	if remaining <= maxDelay {
		m.DueMS = 0 // the last hop
		return h.replace(ctx, m, max(remaining, 0))
	}
	wait := min(remaining-maxDelay+time.Minute, time.Duration(h.left(now)-1)*time.Second)
	if wait > 0 && h.canHide(wait, now) {
		err := h.giveUp(ctx, seconds(wait))
		if failed, ok := asCallFailed(err); !ok || failed.fault != exceeded {
			if err == nil {
				h.finish()
			}
			return err
		}
	}
	return h.replace(ctx, m, maxDelay)
}

// replace sends a copy with m, then deletes the message.
func (h *handle) replace(ctx context.Context, m meta, delay time.Duration) error {
	if m.ID == "" {
		m.ID = h.id
	}
	if err := h.sendCopy(ctx, m, delay); err != nil {
		return err
	}
	return h.drop(ctx)
}

// drop deletes the message, of which there is a copy.
func (h *handle) drop(ctx context.Context) error {
	if err := h.remove(ctx); err != nil {
		return err
	}
	h.finish()
	return nil
}

// sendOn brings the message on its way. It tries until that has worked, or nobody wants messages any more, or the lease is over: then it comes
// again. To give up between copy and delete would double it.
func (h *handle) sendOn(ctx context.Context) {
	h.q.hops.Add(1)
	for i := 0; ; i++ {
		err := once(ctx, h.hop)
		if err == nil {
			return
		}
		again := errors.Is(err, queue.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
		if !again || h.sub.isClosed() || !pause.For(ctx, backoff(i)) {
			h.finish()
			return
		}
	}
}
