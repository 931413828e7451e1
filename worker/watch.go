package worker

import (
	"context"
	"sync"
	"time"
)

// watch is a handler that runs, as those see it who may end it: its attempt, the heartbeat and the stop.
type watch struct {
	ctx    context.Context         //nolint:containedctx // the handler's; it lives as long
	cancel context.CancelCauseFunc // ends ctx

	mu       sync.Mutex
	running  bool
	ended    bool        // it was interrupted
	patience *time.Timer // gives the handler up
}

// start begins: giveUp is called after patience, unless the handler was over by then.
func (w *watch) start(ctx context.Context, cancel context.CancelCauseFunc, patience time.Duration, giveUp func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.cancel = ctx, cancel
	w.running, w.patience = true, time.AfterFunc(patience, giveUp)
}

// returned is told that the handler has returned. It reports false if it was given up before.
func (w *watch) returned() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.running
	w.running = false
	w.patience.Stop()
	return first
}

// abandon gives the handler up and calls mark, before the handler may be heard to have returned. It reports false if it has returned already.
func (w *watch) abandon(mark func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running {
		return false
	}
	w.running = false
	mark()
	return true
}

// interrupt cancels the handler, if one runs that was not yet, and reports whether it did. From then on it has grace to return, unless its
// context was over already: that gives it no more time.
func (w *watch) interrupt(cause error, grace time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running || w.ended {
		return false
	}
	w.ended = true
	if w.ctx.Err() == nil {
		w.cancel(cause)
		w.patience.Reset(grace)
	}
	return true
}

// hurry ends all patience.
func (w *watch) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		w.patience.Reset(0)
	}
}

// runs reports whether a handler runs that was not interrupted.
func (w *watch) runs() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running && !w.ended
}
