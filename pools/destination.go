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
	total       *Limiter      // shared by the whole registry; nil if there is no such limit
	lane        *lane         // shared likewise; nil if the destination is in none
	aimd        *aimdRules    // nil if the limit on concurrency is fixed
	timeout     *timeoutRules // nil if it does not adapt
	shared      bool
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
	since   uint32 // moment at which the older group was complete or, with no permit out, at which the last one came back
	young   uint16 // how many moments later the younger group last grew
	took    uint16 // how long calls take as the slow lane sees it, in parts of its threshold, a moving average; 0 if none has ended
	allowance
	opt *optional // nil for most
}

// Hints for refusals whose end nobody can know.
const (
	fullHint   = int64(time.Second) // for one permit to come back, if no completion rate is known
	budgetHint = int64(time.Second)
	// for those before to be served: they may be quicker than their line
	outrankedHint = int64(5 * time.Second)
)

// check tells whether a call would be refused, and for how long. It takes nothing. The order is that of severity;
// where two waits are known the longer counts.
func (d *destination) check(now int64, retry bool, class Class) (Reason, int64) {
	reason, wait := d.circuit.check(&d.s.breaker, now)
	if reason == ReasonForcedOpen {
		return reason, wait
	}
	if d.tr != nil && d.tr.throttledUntil-now > wait && d.tr.throttledUntil > now {
		return ReasonThrottled, d.tr.throttledUntil - now
	}
	if other := d.sharedWait(now); other > wait {
		return ReasonSharedOpen, other
	}
	if reason != ReasonOK {
		return reason, wait
	}
	if wait := d.outranked(now, class); wait > 0 {
		return ReasonOutranked, wait
	}
	if d.s.concurrency > 0 && d.out >= class.of(d.limit()) {
		return ReasonConcurrencyFull, d.fullWait(now)
	}
	if wait := d.laneWait(now); wait > 0 {
		return ReasonSlowLaneFull, wait
	}
	if wait := d.rate().wait(d.tat, now); wait > 0 {
		return ReasonRateLimited, wait
	}
	if retry && !d.allows(&d.s.budget, now, false) {
		return ReasonBudgetEmpty, budgetHint
	}
	return ReasonOK, 0
}

// outranked is how long a call gives way to those before it; 0 if there are none. It does not to an empty room.
func (d *destination) outranked(now int64, class Class) int64 {
	if d.tr == nil || d.out == 0 && d.tat <= now {
		return 0
	}
	ahead := d.tr.backlog.ahead(class)
	if ahead <= now {
		return 0
	}
	return min(ahead-now, outrankedHint)
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
	return float64(max(d.limit(), 1)) * 1e6 / float64(d.latency)
}

// guess is the drain rate of a destination of which nothing is known. Where permits are what is missing it supposes that calls are quick, and
// corrects that with what it sees: while none has been answered, they take at least as long as jobs have been deferred for. So the
// backlog of a quick destination is back at once, and that of one that hangs comes less and less often.
func (d *destination) guess(at int64) float64 {
	t := d.degrade()
	if d.state != StateClosed || d.s.concurrency == 0 {
		return defaultDrainRate
	}
	if t.blind == never {
		t.blind = at
	}
	return float64(d.limit()) * 1e9 / float64(max(at-t.blind, quickCall))
}

// quickCall is how long a call is supposed to take before one was answered.
const quickCall = int64(20 * time.Millisecond)

// plain says that there is nothing to ask or take but the permit: the destination is well and has no rate limit.
func (d *destination) plain(class Class) bool {
	s := d.s
	return d.tr == nil && (d.opt == nil || d.opt.peer == nil) && d.state == StateClosed && d.override == OverrideNone && s.rate.interval == 0 && s.total == nil &&
		(s.concurrency == 0 || d.out < class.of(d.limit()))
}

// admit takes everything that a call needs, or nothing.
func (d *destination) admit(g *guard, now time.Time, retry bool, class Class) (Permit, Verdict) {
	at := stamp(now)
	d.touch(at)
	if !retry && d.plain(class) && d.quick(at) {
		return Permit{g: g, d: d, start: at, gen: d.gen, group: d.begin(at)}, Verdict{}
	}
	d.settled(&d.s.breaker, at)
	if reason, wait := d.check(at, retry, class); reason != ReasonOK {
		return Permit{}, Verdict{Reason: reason, Wait: time.Duration(wait)}
	}
	step := d.rampStep(&d.s.breaker, at)
	if d.rampHolds(step) {
		return Permit{}, Verdict{Reason: ReasonBreakerOpen, Wait: time.Duration(probeHint)}
	}
	if !d.takeLane(at) { // somebody was quicker since check
		return Permit{}, Verdict{Reason: ReasonSlowLaneFull, Wait: time.Duration(d.s.lane.over)}
	}
	if d.s.total != nil {
		if ok, wait := d.s.total.Allow(now); !ok {
			d.leaveLane()
			return Permit{}, Verdict{Reason: ReasonRateLimited, Wait: wait}
		}
	}
	group := d.begin(at)
	d.rampTake(step)
	d.tat = d.rate().take(d.tat, at)
	if retry {
		d.spend(&d.s.budget, false)
	}
	probe, ch := d.circuit.admit(&d.s.breaker, at)
	d.notify(g, now, ch)
	return Permit{g: g, d: d, start: at, gen: d.gen, group: group, probe: probe, last: lastTry{retry: retry}}, Verdict{}
}

// notify queues a transition for the hooks.
func (d *destination) notify(g *guard, now time.Time, ch change) {
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
	if s.lane == nil {
		d.setLaned(false)
	}
	d.s = s
	if d.opt != nil {
		if s.aimd == nil {
			d.opt.aimd = aimd{}
		}
		if !s.shared {
			d.opt.peer = nil
		}
		if s.timeout == nil {
			d.opt.took = nil
		}
		d.slim()
	}
}

// deferFor gives a deferred job its place in the line of this destination. The line spreads the jobs of one worker; jitter only keeps
// several workers apart, and a place of it does. Under a rate limit it has to be less than what the line is slower than the limit: a job
// that comes too early for its token loses its turn, and the token with it.
func (d *destination) deferFor(at int64, hint time.Duration, class Class) time.Duration {
	s, t := d.s, d.degrade()
	last, place := add(at, s.cap), int64(math.Ceil(1e9/d.drainRate(at)))
	due := t.backlog.join(class, add(at, int64(max(hint, 0))), place, last)
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
		rate = min(rate, rateShare*d.s.rateLimit/float64(d.users()))
	}
	return rate
}
