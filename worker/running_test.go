package worker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A handler has either returned or was given up, never both, whichever comes first.
func TestHandlerIsOverOnce(t *testing.T) {
	t.Parallel()
	for range 2000 {
		var h runningHandler
		h.start(t.Context(), func(error) {}, time.Hour, func() {})
		var returned, abandoned, marked bool
		var both sync.WaitGroup
		both.Go(func() { returned = h.returned() })
		both.Go(func() { abandoned = h.abandon(func() { marked = true }) })
		both.Wait()
		if returned == abandoned || marked != abandoned {
			t.Fatalf("returned %t, abandoned %t, marked %t", returned, abandoned, marked)
		}
	}
}

// Patience ends with the time that the handler had from the beginning, with what an interruption leaves it, or at once.
func TestGiveUpAfter(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		do   func(h *runningHandler)
		want time.Duration
	}{
		"nothing happens": {func(*runningHandler) {}, 10 * time.Second},
		"interrupted":     {func(h *runningHandler) { h.interrupt(lost, 2*time.Second) }, 3 * time.Second},
		"interrupted twice": {func(h *runningHandler) {
			if !h.interruptible() || !h.interrupt(lost, 2*time.Second) || h.interruptible() {
				t.Error("not interrupted")
			}
			time.Sleep(time.Second)
			if h.interrupt(errors.New("again"), time.Minute) {
				t.Error("interrupted again")
			}
		}, 3 * time.Second},
		"interrupted when its time was over": {func(h *runningHandler) {
			time.Sleep(8 * time.Second)
			if !h.interrupt(lost, 2*time.Second) {
				t.Error("not interrupted")
			}
		}, 10 * time.Second},
		"hurried": {func(h *runningHandler) { h.expire() }, time.Second},
		"hurried after it was interrupted": {func(h *runningHandler) {
			h.interrupt(lost, time.Minute)
			h.expire()
		}, time.Second},
		"returned": {func(h *runningHandler) {
			h.returned()
			h.expire()
			if h.interrupt(lost, 0) {
				t.Error("interrupted a handler that has returned")
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outer, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				start := time.Now()
				var after time.Duration
				var h runningHandler
				ctx, stop := context.WithTimeout(outer, 8*time.Second)
				defer stop()
				h.start(ctx, cancel, 10*time.Second, func() { after = time.Since(start) })
				time.Sleep(time.Second)
				c.do(&h)
				time.Sleep(time.Hour)
				synctest.Wait()
				if after != c.want {
					t.Errorf("given up after %s, want %s", after, c.want)
				}
				if cause := context.Cause(ctx); !errors.Is(cause, lost) && !errors.Is(cause, context.DeadlineExceeded) {
					t.Errorf("cause %v", cause)
				}
			})
		})
	}
}
