package pools

import (
	"context"
	"runtime"
	"time"

	"github.com/caisson-go/caisson/pools/budget"
)

// try is how one run of fn ended.
type try[T any] struct {
	v      T
	err    error
	hedge  bool
	panics any  // the value of its panic
	exited bool // it panicked or ended its goroutine
}

// hedge runs fn and, if it takes longer than HedgeAfter and the budget allows, starts a second run beside it. The first success wins; the other
// run is cancelled and waited for. Of two failures the first is returned.
func (p *Policy[T]) hedge(ctx context.Context, a *account, fn func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan try[T], 2)
	start := func(hedge bool) {
		go func() {
			t := try[T]{hedge: hedge, exited: true}
			defer func() {
				if t.exited {
					t.panics = recover()
				}
				ended <- t
			}()
			t.v, t.err = fn(ctx)
			t.exited = false
		}()
	}
	start(false)
	running := 1

	timer := time.NewTimer(p.cfg.HedgeAfter)
	defer timer.Stop()
	var best *try[T]
	for running > 0 {
		select {
		case <-timer.C:
			if best == nil && ctx.Err() == nil && p.mayRetry(a, budget.TryRetry, true) {
				p.note(&p.stats.hedged, CallEventHedged)
				start(true)
				running++
			}
		case t := <-ended:
			running--
			if best == nil || better(t, *best) {
				best = &t
			}
			if t.exited || t.err == nil {
				cancel() // no need of the other
			}
		}
	}
	return p.settle(*best)
}

// better reports whether t, which ended after best, is to be preferred: a panic must not be hidden, a success beats a failure.
func better[T any](t, best try[T]) bool {
	if best.exited || t.exited {
		return !best.exited
	}
	return t.err == nil && best.err != nil
}

// settle ends the hedged attempt as the run that won did, in the caller's goroutine.
func (p *Policy[T]) settle(t try[T]) (T, error) {
	switch {
	case t.panics != nil:
		panic(t.panics)
	case t.exited:
		runtime.Goexit()
	case t.err == nil && t.hedge:
		p.note(&p.stats.hedgeWon, CallEventHedgeWon)
	}
	return t.v, t.err
}
