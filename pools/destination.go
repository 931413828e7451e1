package pools

import (
	"math"
	"time"
)

// settings is one resolved DestinationConfig. It is immutable and shared by all destinations that use it.
type settings struct {
	breaker     BreakerConfig
	width       int64 // of a breaker's bucket
	concurrency uint32
	rate        gcra
	rateLimit   float64
	budget      budgetRules
	drain       float64
	floor, cap  int64
	total       *Limiter // shared by the whole registry; nil if there is no such limit
	rand        func() float64
}

// destination is the state of one destination, guarded by the mutex of its guard. At 100,000 of them every word counts.
type destination struct {
	name string
	s    *settings
	circuit
	tat     int64 // rate limit
	used    uint32
	latency uint32 // of calls that were answered, in microseconds, a moving average; 0 if there was none
	allowance
}

// Hints for refusals whose end nobody can know.
const (
	fullHint   = int64(time.Second) // for one permit to come back, if no completion rate is known
	budgetHint = int64(time.Second)
)

// check tells whether a call would be refused, and for how long. It takes nothing. The order is that of severity;
// where two waits are known the longer counts.
func (d *destination) check(now int64, retry bool) (Reason, int64) {
	reason, wait := d.circuit.check(&d.s.breaker, now)
	if reason == ReasonForcedOpen {
		return reason, wait
	}
	if d.tr != nil && d.tr.gate-now > wait && d.tr.gate > now {
		return ReasonGated, d.tr.gate - now
	}
	if reason != ReasonOK {
		return reason, wait
	}
	if d.s.concurrency > 0 && d.out >= d.s.concurrency {
		return ReasonConcurrencyFull, d.fullWait(now)
	}
	if wait := d.s.rate.wait(d.tat, now); wait > 0 {
		return ReasonRateLimited, wait
	}
	if retry && !d.allows(&d.s.budget, now, false) {
		return ReasonBudgetEmpty, budgetHint
	}
	return ReasonOK, 0
}

// fullWait guesses when a permit comes back.
func (d *destination) fullWait(now int64) int64 {
	if rate := max(d.capacity(), d.measured(now)); rate > 0 {
		return min(max(int64(1e9/rate), int64(10*time.Millisecond)), fullHint)
	}
	return fullHint
}

// measured is how many calls per second completed in the breaker's window; 0 if too few did to tell.
func (d *destination) measured(now int64) float64 {
	t := d.win.tally(slot(now, d.s.width))
	if t.calls < uint64(d.s.breaker.MinimumCalls) {
		return 0
	}
	return float64(t.calls) / d.s.breaker.Window.Seconds()
}

// answered adds a call that took d nanoseconds to the moving average, with a weight of 1/8.
func (d *destination) answered(took int64) {
	us := uint32(min(max(took/1000, 1), math.MaxUint32)) //nolint:gosec // bounded right here
	if d.latency == 0 {
		d.latency = us
		return
	}
	d.latency = uint32((7*uint64(d.latency) + uint64(us) + 7) / 8) //nolint:gosec // an average of two uint32
}

// capacity is how many calls per second the destination answers when all its permits are out: concurrency / latency, by Little's law. Without a
// limit on concurrency one call at a time is assumed. 0 if no call was answered yet.
func (d *destination) capacity() float64 {
	if d.latency == 0 {
		return 0
	}
	return float64(max(d.s.concurrency, 1)) * 1e6 / float64(d.latency)
}

// guess is the drain rate of a destination of which nothing is known. Where permits are what is missing it supposes that calls are quick, and
// corrects that with what it sees: while none has been answered, they take at least as long as jobs have been deferred for. So the
// backlog of a quick destination is back at once, and that of one that hangs comes less and less often.
func (d *destination) guess(at int64) float64 {
	t := d.trouble()
	if d.state != StateClosed || d.s.concurrency == 0 {
		return DefaultDrainRate
	}
	if t.blind == never {
		t.blind = at
	}
	return float64(d.s.concurrency) * 1e9 / float64(max(at-t.blind, quickCall))
}

// quickCall is how long a call is supposed to take before one was answered.
const quickCall = int64(20 * time.Millisecond)

// plain says that there is nothing to ask or take but the permit: the destination is well and has no rate limit.
func (d *destination) plain() bool {
	s := d.s
	return d.tr == nil && d.state == StateClosed && d.override == OverrideNone && s.rate.interval == 0 && s.total == nil &&
		(s.concurrency == 0 || d.out < s.concurrency)
}

// admit takes everything that a call needs, or nothing.
func (d *destination) admit(g *guard, now time.Time, retry bool) (Permit, Verdict) {
	at := stamp(now)
	d.touch(at)
	if d.plain() && !retry {
		d.out++
		return Permit{g: g, d: d, start: at, gen: d.gen}, Verdict{}
	}
	d.settled(&d.s.breaker, at)
	if reason, wait := d.check(at, retry); reason != ReasonOK {
		return Permit{}, Verdict{Reason: reason, Wait: time.Duration(wait)}
	}
	step := d.rampStep(&d.s.breaker, at)
	if d.rampHolds(step) {
		return Permit{}, Verdict{Reason: ReasonBreakerOpen, Wait: time.Duration(probeHint)}
	}
	if d.s.total != nil {
		if ok, wait := d.s.total.Allow(now); !ok {
			return Permit{}, Verdict{Reason: ReasonRateLimited, Wait: wait}
		}
	}
	d.rampTake(step)
	d.tat = d.s.rate.take(d.tat, at)
	if retry {
		d.spend(&d.s.budget, false)
	}
	probe, ch := d.circuit.admit(&d.s.breaker, at)
	d.tell(g, now, ch)
	return Permit{g: g, d: d, start: at, gen: d.gen, probe: probe, last: lastTry{retry: retry}}, Verdict{}
}

// tell queues a transition for the hooks.
func (d *destination) tell(g *guard, now time.Time, ch change) {
	if ch.reason != "" {
		g.hooks.push(Transition{Destination: d.name, From: ch.from, To: ch.to, Reason: ch.reason, At: now})
	}
}

// touch remembers the last use in ticks; it wraps, like slots.
func (d *destination) touch(at int64) { d.used = tick(at) }

// tick numbers spans of 2^30 ns, a little more than a second: a shift costs a tenth of a division.
func tick(at int64) uint32 { return uint32(at >> 30) } //nolint:gosec // it wraps

// evictable reports whether forgetting d loses nothing: closed, not overridden, no permit out, no gate, ramp, deferred job or
// rate debt, and unused for longer than idle and the window.
func (d *destination) evictable(at int64, idle time.Duration) bool {
	if d.state != StateClosed || d.override != OverrideNone || d.out > 0 || d.tat > at {
		return false
	}
	ticks := int32(tick(at)-d.used) - 1 // whole ones
	if time.Duration(ticks)<<30 <= max(idle, d.s.breaker.Window) {
		return false
	}
	return d.settled(&d.s.breaker, at)
}

// configure changes the settings and keeps permits, state and counts.
func (d *destination) configure(at int64, s *settings) {
	if d.win != nil && s.width != d.s.width {
		d.win.tally(slot(at, d.s.width))
		d.win.rebase(slot(at, s.width))
	}
	if s.budget.form != d.s.budget.form || s.budget.width != d.s.budget.width {
		d.allowance = allowance{head: slot(at, s.budget.width)}
	}
	d.s = s
}

// deferFor gives a deferred job its place in the line of this destination. The line spreads the jobs of one worker; jitter only keeps
// several workers apart, and a place of it does. Under a rate limit it has to be less than what the line is slower than the limit: a job
// that comes too early for its token loses its turn, and the token with it.
func (d *destination) deferFor(at int64, hint time.Duration) time.Duration {
	s, t := d.s, d.trouble()
	last, place := add(at, s.cap), int64(math.Ceil(1e9/d.drainRate(at)))
	due := min(max(add(at, int64(max(hint, 0))), t.line), last)
	t.line = min(add(due, place), last)
	delay := min(max(due-at, s.floor), int64(float64(s.cap)/deferJitter))
	spread := float64(max(place, s.floor))
	if s.rateLimit > 0 && s.drain <= 0 {
		spread = float64(place) * (1 - rateShare)
	}
	return time.Duration(float64(delay) + s.rand()*min((deferJitter-1)*float64(delay), spread))
}

const (
	deferJitter = 1.2
	rateShare   = 0.95 // of a rate limit that deferred jobs come back with
)

// drainRate is how many deferred jobs per second are let come back. While the breaker is not closed, what the destination could do when it was
// well says nothing.
func (d *destination) drainRate(at int64) float64 {
	if d.s.drain > 0 {
		return d.s.drain
	}
	rate := d.measured(at)
	if d.state == StateClosed {
		rate = max(rate, d.capacity())
	}
	if rate == 0 {
		rate = d.guess(at)
	}
	if d.s.rateLimit > 0 {
		rate = min(rate, rateShare*d.s.rateLimit)
	}
	return rate
}
