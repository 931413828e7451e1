package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// fakeHandle records calls and answers with err.
type fakeHandle struct {
	mu    sync.Mutex
	busy  bool
	calls []string
	err   error
}

func (h *fakeHandle) call(name string) error {
	h.mu.Lock()
	if h.busy {
		h.mu.Unlock()
		panic("two calls on a handle at once")
	}
	h.busy = true
	h.mu.Unlock()
	time.Sleep(time.Millisecond) // virtual: others get to the lease meanwhile
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy = false
	h.calls = append(h.calls, name)
	return h.err
}

func (h *fakeHandle) Extend(_ context.Context, d time.Duration) error {
	return h.call(fmt.Sprint("extend ", d))
}

func (h *fakeHandle) Settle(_ context.Context, s queue.Settlement) error {
	return h.call(fmt.Sprint(s.Action, " ", s.Delay, " ", s.Uncharged))
}

// inBubble runs f with a lease of 10 s in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, h *fakeHandle, l *queue.Lease)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHandle{}
		f(t, h, queue.NewLease(queue.Message{}, h, time.Now().Add(10*time.Second)))
	})
}

func allCalls(ctx context.Context, l *queue.Lease) map[string]error {
	return map[string]error{
		"ack":     l.Ack(ctx),
		"retry":   l.Retry(ctx, time.Second, true),
		"release": l.Release(ctx),
		"extend":  l.Extend(ctx, time.Second),
	}
}

func wantAll(t *testing.T, got map[string]error, want error) {
	t.Helper()
	for name, err := range got {
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
}

func TestLeaseSettlements(t *testing.T) {
	t.Parallel()
	for want, settle := range map[string]func(*queue.Lease, context.Context) error{
		"ack 0s false":    (*queue.Lease).Ack,
		"release 0s true": (*queue.Lease).Release,
		"retry 2s true":   func(l *queue.Lease, ctx context.Context) error { return l.Retry(ctx, 2*time.Second, true) },
		"retry 3s false":  func(l *queue.Lease, ctx context.Context) error { return l.Retry(ctx, 3*time.Second, false) },
		"retry 0s false":  func(l *queue.Lease, ctx context.Context) error { return l.Retry(ctx, -time.Second, false) },
		"release 0s false": func(l *queue.Lease, ctx context.Context) error {
			return l.Settle(ctx, queue.Settlement{Action: queue.ActionRelease})
		},
	} {
		inBubble(t, func(t *testing.T, h *fakeHandle, l *queue.Lease) {
			if err := settle(l, t.Context()); err != nil {
				t.Fatal(err)
			}
			wantAll(t, allCalls(t.Context(), l), queue.ErrSettled)
			time.Sleep(time.Minute)
			wantAll(t, allCalls(t.Context(), l), queue.ErrSettled) // not ErrLeaseLost: it ended well
			if !slices.Equal(h.calls, []string{want}) {
				t.Errorf("handle got %q, want %q alone", h.calls, want)
			}
		})
	}
}

func TestLeaseIsLostAtItsDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, h *fakeHandle, l *queue.Lease) {
		time.Sleep(10 * time.Second)
		wantAll(t, allCalls(t.Context(), l), queue.ErrLeaseLost)
		if len(h.calls) > 0 {
			t.Errorf("after the deadline the handle got %q", h.calls)
		}
	})
}

func TestLeaseHoldsUntilItsDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *fakeHandle, l *queue.Lease) {
		time.Sleep(10*time.Second - 1)
		if err := l.Ack(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestExtendMovesTheDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, h *fakeHandle, l *queue.Lease) {
		time.Sleep(9 * time.Second)
		start := time.Now()
		if err := l.Extend(t.Context(), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		// Counted from before the call, so never later than the broker's own.
		if want := start.Add(5 * time.Second); !l.Deadline().Equal(want) {
			t.Errorf("deadline is %v, want %v", l.Deadline(), want)
		}
		h.err = queue.ErrUnavailable
		if err := l.Extend(t.Context(), time.Hour); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
		if want := start.Add(5 * time.Second); !l.Deadline().Equal(want) {
			t.Errorf("a failed Extend moved the deadline to %v", l.Deadline())
		}
	})
}

func TestRetryableErrorLeavesTheLeaseHeld(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, h *fakeHandle, l *queue.Lease) {
		h.err = fmt.Errorf("dial: %w", queue.ErrUnavailable)
		wantAll(t, allCalls(t.Context(), l), queue.ErrUnavailable)
		h.err = nil
		if err := l.Ack(t.Context()); err != nil {
			t.Errorf("Ack after the broker came back: %v", err)
		}
	})
}

func TestLossReportedByTheBrokerIsFinal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, h *fakeHandle, l *queue.Lease) {
		h.err = queue.ErrLeaseLost
		if err := l.Extend(t.Context(), time.Second); !errors.Is(err, queue.ErrLeaseLost) {
			t.Fatalf("error %v", err)
		}
		h.err = nil
		wantAll(t, allCalls(t.Context(), l), queue.ErrLeaseLost)
		if len(h.calls) != 1 {
			t.Errorf("handle got %q", h.calls)
		}
	})
}

func TestConcurrentSettlementsHaveOneWinner(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, h *fakeHandle, l *queue.Lease) {
		const callers = 50
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				switch i % 3 {
				case 0:
					errs[i] = l.Ack(t.Context())
				case 1:
					errs[i] = l.Retry(t.Context(), time.Second, false)
				default:
					errs[i] = l.Release(t.Context())
				}
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, queue.ErrSettled) {
				t.Errorf("a loser got %v, want ErrSettled", err)
			}
		}
		if won != 1 || len(h.calls) != 1 {
			t.Errorf("%d callers won and the handle got %q, want one", won, h.calls)
		}
	})
}

// TestHungCallDoesNotHoldOthers proves that each caller waits no longer than its own context.
func TestHungCallDoesNotHoldOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *fakeHandle, l *queue.Lease) {
		release := make(chan struct{})
		l.Decorate(func(next queue.Handle) queue.Handle { return &hangingHandle{Handle: next, release: release} })
		hung := make(chan error)
		go func() { hung <- l.Retry(t.Context(), 0, false) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Extend(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Extend beside a hung call: error %v", err)
		}
		close(release)
		if err := <-hung; err != nil {
			t.Error(err)
		}
	})
}

// TestDeadlineNeverWaits reads the deadline while a broker call hangs, as a heartbeat does.
func TestDeadlineNeverWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *fakeHandle, l *queue.Lease) {
		release := make(chan struct{})
		l.Decorate(func(next queue.Handle) queue.Handle { return &hangingHandle{Handle: next, release: release} })
		done := make(chan error)
		go func() { done <- l.Ack(t.Context()) }()
		synctest.Wait()
		if got := time.Until(l.Deadline()); got != 10*time.Second {
			t.Errorf("deadline is %v away", got)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// hangingHandle holds each settlement until release is closed.
type hangingHandle struct {
	queue.Handle
	release chan struct{}
}

func (h *hangingHandle) Settle(ctx context.Context, s queue.Settlement) error {
	<-h.release
	return h.Handle.Settle(ctx, s)
}

func TestExtendAndCeiling(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, h *fakeHandle, l *queue.Lease) {
		l.Ceiling = l.Deadline().Add(10 * time.Second)
		for _, s := range []struct {
			ask, want time.Duration // from now
			calls     int
		}{
			{5 * time.Second, 5 * time.Second, 1}, // a lease may be shortened
			{time.Hour, 20*time.Second - time.Millisecond, 2},
			{time.Hour, 20*time.Second - 2*time.Millisecond, 2}, // nothing to be gained: no call
		} {
			start := time.Now()
			if err := l.Extend(t.Context(), s.ask); err != nil {
				t.Fatal(err)
			}
			if got := l.Deadline().Sub(start); got > s.ask || got > l.Ceiling.Sub(start) || got < s.want-2*time.Millisecond {
				t.Errorf("Extend by %v with the ceiling %v away: the deadline is %v away", s.ask, l.Ceiling.Sub(start), got)
			}
			if len(h.calls) != s.calls {
				t.Errorf("Extend by %v: %d calls in all, want %d", s.ask, len(h.calls), s.calls)
			}
		}
	})
}
