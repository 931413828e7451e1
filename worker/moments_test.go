package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/worker"
)

// endings are the ways in which a handler is over.
var endings = map[string]func() error{
	"success": func() error { return nil },
	"error":   func() error { return errBoom },
	"panic":   func() error { panic("boom") },
	"goexit":  func() error { runtime.Goexit(); return nil },
}

// accounts checks that nothing is held any more, and that every event has its counterpart.
func (b *bubble) accounts() {
	b.t.Helper()
	s := b.w.Snapshot()
	if s.InFlight != 0 || s.Abandoned != 0 || s.Queues[0].InUse != 0 {
		b.t.Errorf("%d in flight, %d abandoned, %d slots in use", s.InFlight, s.Abandoned, s.Queues[0].InUse)
	}
	for _, p := range s.Pools {
		if p.InUse != 0 {
			b.t.Errorf("%d places of %q in use", p.InUse, p.Kind)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	received, settled, gone, back := 0, 0, 0, 0
	for _, e := range b.events {
		switch e := e.(type) {
		case *worker.Received:
			received += e.Count
		case *worker.Settled:
			settled++
		case *worker.Abandoned:
			if e.Returned {
				back++
			} else {
				gone++
			}
		}
	}
	if received != settled || gone != back {
		b.t.Errorf("%d received and %d settled; %d given up and %d returned", received, settled, gone, back)
	}
}

// A handler may end in any way at any moment, at that very one when its time or its grace is over: its slot and its place are free afterwards,
// its attempt is settled once, and the next job of the slot finds a context that is alive.
func TestHandlersThatEndAtAnyMoment(t *testing.T) {
	t.Parallel()
	const timeout, grace = time.Second, time.Second
	forms(t, func(t *testing.T, keyed bool) {
		registry := worker.NewRegistry()
		cfg := worker.KindConfig{Keyed: &keyed, Timeout: timeout, TimeoutGrace: grace, MaxAttempts: 2, Bulkhead: 3, Backoff: every(t, time.Second)}
		work(registry, "k", cfg, func(ctx context.Context, job *worker.Job) error {
			if err := context.Cause(ctx); err != nil {
				t.Errorf("a job begins with a context that is over: %v", err)
			}
			var lasts time.Duration
			var end string
			if _, err := fmt.Sscan(string(job.Payload), &lasts, &end); err != nil {
				t.Error(err)
			}
			time.Sleep(lasts)
			return endings[end]()
		})
		inBubble(t, worker.Config{Registry: registry, Concurrency: 6}, func(b *bubble) {
			for end := range endings {
				for _, at := range []time.Duration{0, timeout, timeout + grace, timeout + 2*grace} {
					for _, off := range []time.Duration{-1, 0, 1} {
						b.enqueue(worker.NewJob{Kind: "k", Payload: fmt.Appendf(nil, "%d %s", max(at+off, 0), end)})
					}
				}
			}
			b.after(time.Hour)
			b.accounts()
			depth, err := b.broker.Depth(b.ctx, worker.DefaultQueue)
			if err != nil || depth.Ready.N+depth.Delayed.N+depth.InFlight.N != 0 {
				t.Errorf("depth %+v, error %v", depth, err)
			}
		})
	})
}

// The same, with a stop that comes in the middle: Run names the handlers that have not returned by then, and no others, and whatever these
// do later does no harm. Nothing is left running: the bubble would see it.
func TestHandlersThatEndAtAnyMomentOfAStop(t *testing.T) {
	t.Parallel()
	const grace, hard = 3 * time.Second, 2 * time.Second
	registry := worker.NewRegistry()
	cfg := worker.KindConfig{Timeout: 4 * time.Second, TimeoutGrace: 2 * time.Second, Bulkhead: 40, MaxAttempts: 10}
	work(registry, "k", cfg, func(_ context.Context, job *worker.Job) error {
		var lasts time.Duration
		var end string
		if _, err := fmt.Sscan(string(job.Payload), &lasts, &end); err != nil {
			t.Error(err)
		}
		time.Sleep(lasts)
		return endings[end]()
	})
	for _, c := range []struct {
		name        string
		grace, hard time.Duration
	}{
		{"grace and hard", grace, hard},
		{"no grace", 0, grace + hard},
		{"no patience", grace, 1},
		{"neither", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
				b.start(worker.Config{Registry: registry, Concurrency: 40, StopGrace: &c.grace, StopHard: &c.hard})
				slow := 0
				for end := range endings {
					for _, at := range []time.Duration{time.Second, time.Second + grace, 4 * time.Second, time.Second + grace + hard, time.Minute} {
						for _, off := range []time.Duration{0, 1} {
							b.enqueue(worker.NewJob{Kind: "k", Payload: fmt.Appendf(nil, "%d %s", at+off, end)})
						}
						if at == time.Minute {
							slow += 2
						}
					}
				}
				b.after(time.Second)
				start := time.Now()
				err := b.stop()
				took, limit := time.Since(start), max(c.grace, 0)+c.hard
				var abandoned *worker.AbandonedError
				if !errors.As(err, &abandoned) || len(abandoned.Jobs) < slow {
					t.Errorf("run: %v; %d handlers last for a minute", err, slow)
				}
				if took > limit {
					t.Errorf("the stop took %s, want %s", took, limit)
				}
				b.after(5 * time.Minute) // all have returned
				b.accounts()
				if err := b.broker.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// sluggish is a store whose claims take their time.
type sluggish struct {
	idempotency.Store
	takes time.Duration
}

func (s sluggish) Claim(ctx context.Context, reqs []idempotency.Request) []idempotency.Claim {
	time.Sleep(s.takes)
	return s.Store.Claim(ctx, reqs)
}

// A handler that starts when the job's deadline has passed, since the claim took long, is given its grace to return.
func TestHandlerThatStartsPastItsDeadlineIsNotGivenUp(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{}, func(ctx context.Context, _ *worker.Job) error {
		<-ctx.Done()
		time.Sleep(time.Second)
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
		b.start(worker.Config{Registry: registry, Store: sluggish{b.claims, 20 * time.Second}})
		id := b.enqueue(worker.NewJob{Kind: "k", Deadline: time.Now().Add(time.Second)})
		b.after(time.Minute)
		if s := b.settled(id); len(s) != 1 || s[0].Outcome != worker.OutcomeSucceeded {
			t.Errorf("settled %+v", s)
		}
		b.accounts()
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if err := b.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}

// thief is a store that says of claims that they are lost, from a moment on.
type thief struct {
	idempotency.Store
	from atomic.Int64 // in nanoseconds; 0 means never
}

func (s *thief) Extend(ctx context.Context, exts []idempotency.Extension) []error {
	if from := s.from.Load(); from == 0 || time.Now().UnixNano() < from {
		return s.Store.Extend(ctx, exts)
	}
	errs := make([]error, len(exts))
	for i := range errs {
		errs[i] = idempotency.ErrClaimLost
	}
	return errs
}

// A handler whose claim is lost has its grace to return, and no more of it if its time was over already. How long it may run makes no difference.
func TestLostClaimGivesGraceOnce(t *testing.T) {
	t.Parallel()
	const lease, grace = 4 * time.Second, 10 * time.Second
	for name, c := range map[string]struct {
		timeout  time.Duration
		lostAt   time.Duration // at the next tick
		gone     time.Duration // when the handler is given up at the latest
		cause    error
		outcome  worker.Outcome
		returned time.Duration
	}{
		"while it may run":      {timeout: time.Hour, lostAt: 5 * time.Second, gone: 17 * time.Second, cause: worker.ErrClaimLost, outcome: worker.OutcomeInterrupted},
		"in its grace":          {timeout: 10 * time.Second, lostAt: 16 * time.Second, gone: 20 * time.Second, cause: worker.ErrTimeout, outcome: worker.OutcomeFailed},
		"returns in the grace":  {timeout: time.Hour, lostAt: 5 * time.Second, cause: worker.ErrClaimLost, outcome: worker.OutcomeInterrupted, returned: 14 * time.Second},
		"may run for all time":  {timeout: math.MaxInt64, lostAt: 5 * time.Second, cause: worker.ErrClaimLost, outcome: worker.OutcomeInterrupted, returned: 14 * time.Second},
		"after it was given up": {timeout: time.Second, lostAt: 12 * time.Second, gone: 11 * time.Second, cause: worker.ErrTimeout, outcome: worker.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := worker.NewRegistry()
				start := time.Now()
				var cause error
				var gone time.Duration
				var mu sync.Mutex
				calls := 0
				cfg := worker.KindConfig{Timeout: c.timeout, TimeoutGrace: grace, Backoff: every(t, time.Hour)}
				work(registry, "k", cfg, func(ctx context.Context, _ *worker.Job) error {
					if calls++; calls > 1 {
						return nil
					}
					time.Sleep(10 * time.Second)
					<-ctx.Done()
					cause = context.Cause(ctx)
					if c.returned > 0 {
						time.Sleep(time.Until(start.Add(c.returned)))
					} else {
						time.Sleep(time.Minute)
					}
					return errBoom
				})
				b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
				b.also = observerFunc(func(e worker.Event) {
					if a, ok := e.(*worker.Abandoned); ok && !a.Returned {
						mu.Lock()
						defer mu.Unlock()
						gone = time.Since(start)
					}
				})
				store := &thief{Store: b.claims}
				store.from.Store(start.Add(c.lostAt).UnixNano())
				b.start(worker.Config{Registry: registry, Store: store, Lease: lease, Concurrency: 1})
				id := b.enqueue(worker.NewJob{Kind: "k"})
				b.after(30 * time.Second)
				mu.Lock()
				if gone > c.gone || (gone == 0) != (c.gone == 0) {
					t.Errorf("given up after %s, want %s", gone, c.gone)
				}
				mu.Unlock()
				if !errors.Is(cause, c.cause) {
					t.Errorf("cause %v, want %v", cause, c.cause)
				}
				if s := b.settled(id); len(s) == 0 || s[0].Outcome != c.outcome {
					t.Errorf("settled %+v", s)
				}
				b.after(time.Hour)
				b.accounts()
				if err := b.stop(); err != nil {
					t.Error(err)
				}
				if err := b.broker.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
