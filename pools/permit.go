package pools

import (
	"sync"
	"time"
)

// guard is the lock that one or many destinations share, and the hooks that are told after it is released.
type guard struct {
	mu    sync.Mutex
	hooks *hooks
}

func (g *guard) unlock() {
	g.mu.Unlock()
	if g.hooks.pending.Load() > 0 {
		g.hooks.deliver()
	}
}

// Permit is the right to make one call. Keep it in one place and hand it on by pointer: a copy could be completed a
// second time. The zero Permit is valid and does nothing. It is safe for concurrent use.
type Permit struct {
	g     *guard
	d     *destination
	start int64
	gen   uint32
	group uint8 // of calls in flight
	probe bool
	done  bool
	last  lastTry
}

// Done gives everything back and records the outcome as of now. Only the first completion counts; later calls do nothing.
func (p *Permit) Done(now time.Time, o Outcome) { p.finish(now, o, true) }

// finish is Done; news says that the retry budget has not heard of the outcome yet.
func (p *Permit) finish(now time.Time, o Outcome, news bool) {
	if p.d == nil {
		return
	}
	p.g.mu.Lock()
	defer p.g.unlock()
	if p.done {
		return
	}
	p.done = true
	at := stamp(now)
	p.d.touch(at)
	p.d.adapt(p.start, at, o)
	p.d.release(at, p.group)
	p.d.paced(at, at-p.start)
	p.d.timed(at-p.start, o)
	if o == OutcomeSuccess || o == OutcomeSlow {
		p.d.answered(at - p.start)
	}
	if news {
		p.d.record(&p.d.s.budget, at, o, p.last.spent(&p.d.s.budget))
	}
	p.d.notify(p.g, now, p.d.report(p.d.s, at, p, o))
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

// attempted tells the retry budget, and it alone, how one attempt of the call has ended.
func (p *Permit) attempted(now time.Time, o Outcome) {
	if p.d == nil {
		return
	}
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	p.d.record(&p.d.s.budget, stamp(now), o, p.last.spent(&p.d.s.budget))
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
	at, s := stamp(now), p.d.s
	p.d.release(at, p.group)
	p.d.tat = p.d.rate().undo(p.d.tat)
	if s.total != nil {
		s.total.Return()
	}
	if p.last.retry {
		p.d.unspend(&s.budget, at, p.last.throttled)
	}
	p.d.notify(p.g, now, p.d.report(s, at, p, OutcomeIgnored))
}

// Retry asks for one more try of the same call, or for a hedge: it takes from the destination's retry budget and rate limit, both
// or nothing, and refuses once the breaker has opened. The permit itself stays out.
func (p *Permit) Retry(now time.Time, throttled bool) Verdict { return p.again(now, throttled, false) }

// again is Retry. What a hedge cost does not come back with the call's success: it would be free on a dependency that is slow for all.
func (p *Permit) again(now time.Time, throttled, hedge bool) Verdict {
	if p.d == nil {
		return Verdict{}
	}
	p.g.mu.Lock()
	defer p.g.unlock()
	at, d := stamp(now), p.d
	switch {
	case d.override == OverrideOpen:
		return Verdict{Reason: ReasonForcedOpen, Wait: d.s.breaker.OpenFor}
	case d.override == OverrideNone && p.gen != d.gen && d.state != StateClosed:
		_, wait := d.circuit.check(&d.s.breaker, at)
		return Verdict{Reason: ReasonBreakerOpen, Wait: time.Duration(max(wait, probeHint))}
	case d.tr != nil && d.tr.throttledUntil > at:
		return Verdict{Reason: ReasonThrottled, Wait: time.Duration(d.tr.throttledUntil - at)}
	case d.sharedWait(at) > 0:
		return Verdict{Reason: ReasonSharedOpen, Wait: time.Duration(d.sharedWait(at))}
	case d.rate().wait(d.tat, at) > 0:
		return Verdict{Reason: ReasonRateLimited, Wait: time.Duration(d.rate().wait(d.tat, at))}
	case !d.allows(&d.s.budget, at, throttled):
		return Verdict{Reason: ReasonBudgetEmpty, Wait: time.Duration(budgetHint)}
	}
	if d.s.total != nil {
		if ok, wait := d.s.total.Allow(now); !ok {
			return Verdict{Reason: ReasonRateLimited, Wait: wait}
		}
	}
	d.tat = d.rate().take(d.tat, at)
	d.spend(&d.s.budget, throttled)
	p.last = lastTry{!hedge, throttled}
	return Verdict{}
}
