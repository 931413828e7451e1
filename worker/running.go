package worker

import (
	"context"
	"sync"
	"time"
)

// runningHandler is a handler that runs, as those see it who may end it: its attempt, the heartbeat and the stop.
type runningHandler struct {
	ctx    context.Context         //nolint:containedctx // the handler's; it lives as long
	cancel context.CancelCauseFunc // ends ctx

	mu          sync.Mutex
	active      bool
	interrupted bool        // it was interrupted
	deadline    *time.Timer // gives the handler up
}

// start begins: giveUp is called after maxWait, unless the handler was over by then.
func (w *runningHandler) start(ctx context.Context, cancel context.CancelCauseFunc, maxWait time.Duration, giveUp func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.cancel = ctx, cancel
	w.active, w.deadline = true, time.AfterFunc(maxWait, giveUp)
}

// returned is told that the handler has returned. It reports false if it was given up before.
func (w *runningHandler) returned() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.active
	w.active = false
	w.deadline.Stop()
	return first
}

// abandon gives the handler up and calls mark, before the handler may be heard to have returned. It reports false if it has returned already.
func (w *runningHandler) abandon(mark func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.active {
		return false
	}
	w.active = false
	mark()
	return true
}

// interrupt cancels the handler, if it runs and was not interrupted before, and reports whether it did. From then on it has grace to return, unless its
// context was over already: that gives it no more time.
func (w *runningHandler) interrupt(cause error, grace time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.active || w.interrupted {
		return false
	}
	w.interrupted = true
	if w.ctx.Err() == nil {
		w.cancel(cause)
		w.deadline.Reset(grace)
	}
	return true
}

// expire has the handler given up at once.
func (w *runningHandler) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active {
		w.deadline.Reset(0)
	}
}

// interruptible reports whether a handler runs that was not interrupted.
func (w *runningHandler) interruptible() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active && !w.interrupted
}
