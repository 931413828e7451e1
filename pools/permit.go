package pools

import (
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/internal/notify"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// guard is the lock that destinations share, and the hook that is called after it is released.
type guard struct {
	mu    sync.Mutex
	out   int // permits of all of them
	hooks *notify.Queue[breaker.Transition]
}

func (g *guard) unlock() {
	g.mu.Unlock()
	g.hooks.Deliver()
}

// Permit is the right to make one call. Keep it in one place and hand it on by pointer: a copy could be completed a
// second time. The zero Permit is valid and does nothing. It is safe for concurrent use.
type Permit struct {
	g     *guard
	d     *destination
	trial breaker.Trial
	group uint8 // of calls in flight
	done  bool
	last  budget.Try
}

// Done gives everything back and records the outcome as of now. Only the first completion counts; later calls do nothing.
func (p *Permit) Done(now time.Time, o breaker.Outcome) { p.finish(now, o, true) }

// finish is Done; news says that the retry budget does not know of the outcome yet.
func (p *Permit) finish(now time.Time, o breaker.Outcome, news bool) {
	if p.d == nil {
		return
	}
	p.g.mu.Lock()
	defer p.g.unlock()
	if p.done {
		return
	}
	p.done = true
	p.g.out--
	at, start := stamp.Of(now), p.trial.Start()
	p.d.touch(at)
	p.d.adapt(start, at, o)
	p.d.release(at, p.group)
	p.d.paced(at, at-start)
	p.d.timed(at-start, o)
	if o == breaker.OutcomeSuccess || o == breaker.OutcomeSlow {
		p.d.answered(at - start)
	}
	if news {
		p.d.balance.Record(&p.d.s.budget, at, p.last, o)
	}
	p.d.notify(p.g, now, p.d.circuit.Report(&p.d.s.breaker, at, p.trial, o))
}

// Timeout is how long the call may take by what is known of its destination; 0 if the destination does not say.
func (p *Permit) Timeout() time.Duration {
	if p.d == nil {
		return 0
	}
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return time.Duration(p.d.timeout())
}

// attempted records in the retry budget, and there alone, how one attempt of the call has ended.
func (p *Permit) attempted(now time.Time, o breaker.Outcome) {
	if p.d == nil {
		return
	}
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	p.d.balance.Record(&p.d.s.budget, stamp.Of(now), p.last, o)
}

// Cancel gives everything back as if the call had never been admitted, rate token and retry budget too: for a call that
// was not started after all.
func (p *Permit) Cancel(now time.Time) {
	if p.d == nil {
		return
	}
	p.g.mu.Lock()
	defer p.g.unlock()
	if p.done {
		return
	}
	p.done = true
	p.g.out--
	at, s := stamp.Of(now), p.d.s
	p.d.release(at, p.group)
	p.d.tat = p.d.rate().Undo(p.d.tat)
	if s.total != nil {
		s.total.Return()
	}
	p.d.balance.Return(&s.budget, at, p.last)
	p.d.notify(p.g, now, p.d.circuit.Report(&s.breaker, at, p.trial, breaker.OutcomeIgnored))
}

// Retry asks for one more try of the same call, or for a hedge: it takes from the destination's retry budget and rate limit, both
// or nothing, and refuses once the breaker has opened. The permit itself stays out.
func (p *Permit) Retry(now time.Time, t budget.Try) Verdict { return p.again(now, t, false) }

// again is Retry. What a hedge cost does not come back with the call's success: it would be free on a dependency that is slow for all.
func (p *Permit) again(now time.Time, t budget.Try, hedge bool) Verdict {
	if p.d == nil {
		return Verdict{}
	}
	p.g.mu.Lock()
	defer p.g.unlock()
	at, d := stamp.Of(now), p.d
	if v := d.mayRetry(at, t, p.trial); !v.OK() {
		return v
	}
	if d.s.total != nil {
		if ok, wait := d.s.total.Allow(now); !ok {
			return Verdict{Reason: ReasonRateLimited, Wait: wait}
		}
	}
	d.tat = d.rate().Take(d.tat, at)
	d.balance.Take(&d.s.budget, t)
	if p.last = t; hedge {
		p.last = budget.TryFirst
	}
	return Verdict{}
}

// mayRetry checks everything that another try of a call needs of its destination.
func (d *destination) mayRetry(at int64, t budget.Try, trial breaker.Trial) Verdict {
	if wait := d.circuit.Overtaken(&d.s.breaker, at, trial); wait > 0 {
		return Verdict{Reason: d.openReason(), Wait: wait}
	}
	if wait := d.throttledFor(at); wait > 0 {
		return Verdict{Reason: ReasonThrottled, Wait: time.Duration(wait)}
	}
	if wait := d.sharedWait(at); wait > 0 {
		return Verdict{Reason: ReasonSharedOpen, Wait: time.Duration(wait)}
	}
	if wait := d.rate().Wait(d.tat, at); wait > 0 {
		return Verdict{Reason: ReasonRateLimited, Wait: time.Duration(wait)}
	}
	if !d.balance.Allows(&d.s.budget, at, t) {
		return Verdict{Reason: ReasonBudgetEmpty, Wait: time.Duration(budgetHint)}
	}
	return Verdict{}
}
