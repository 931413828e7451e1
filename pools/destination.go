package pools

import (
	"math"
	"time"

	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/internal/stamp"
	"github.com/caisson-go/caisson/pools/limiter"
)

// settings is one resolved DestinationConfig. It is immutable and shared by all destinations that use it.
type settings struct {
	breaker     breaker.Rules
	concurrency uint32
	rate        limiter.Rules
	rateLimit   float64
	budget      budget.Rules
	drain       float64
	floor, cap  int64
	total       *limiter.Limiter       // shared by the whole registry; nil if there is no such limit
	lane        *lane                  // shared likewise; nil if the destination is in none
	limit       *adaptive.LimitRules   // nil if the limit on concurrency is fixed
	timeout     *adaptive.TimeoutRules // nil if it does not adapt
	shared      bool
	rand        func() float64
}

// destination is the state of one destination, guarded by the mutex of its guard. At 100,000 of them every word counts.
type destination struct {
	name    string
	s       *settings
	circuit breaker.Circuit
	tat     int64  // rate limit
	used    uint32 // tick of the last use
	latency uint32 // of calls that were answered, in microseconds, a moving average; 0 if there was none
	out     uint32 // permits out
	old     uint32 // those of them in the older group
	since   uint32 // moment at which the older group was complete or, with no permit out, at which the last one came back
	young   uint16 // how many moments later the younger group last grew
	marks   marks
	balance budget.Balance
	opt     *optional // nil for most
}

// Hints for refusals whose end nobody can know.
const (
	fullHint   = int64(time.Second) // for one permit to come back, if no completion rate is known
	budgetHint = int64(time.Second)
	// how long calls of higher classes are given: they may need less than their backlog says
	outrankedHint = int64(5 * time.Second)
	rampHint      = time.Second
)

// openReason is why the breaker refuses.
func (d *destination) openReason() Reason {
	if d.circuit.Override() == breaker.OverrideOpen {
		return ReasonForcedOpen
	}
	return ReasonBreakerOpen
}

// check returns why and for how long a call is refused. It takes nothing. The order is that of severity;
// where two waits are known the longer counts.
func (d *destination) check(now int64, retry bool, class Class) (Reason, int64) {
	open := int64(d.circuit.Check(&d.s.breaker, now, int(d.out)))
	if d.circuit.Override() == breaker.OverrideOpen {
		return ReasonForcedOpen, open
	}
	if wait := d.throttledFor(now); wait > open {
		return ReasonThrottled, wait
	}
	if other := d.sharedWait(now); other > open {
		return ReasonSharedOpen, other
	}
	if open > 0 {
		return ReasonBreakerOpen, open
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
	if wait := d.rate().Wait(d.tat, now); wait > 0 {
		return ReasonRateLimited, wait
	}
	if retry && !d.balance.Allows(&d.s.budget, now, budget.TryRetry) {
		return ReasonBudgetEmpty, budgetHint
	}
	return ReasonOK, 0
}

// outranked is how long a call gives way to those before it; 0 if there are none. It gives way to nobody where nothing runs or is owed.
func (d *destination) outranked(now int64, class Class) int64 {
	w := d.waits()
	if w == nil || d.out == 0 && d.tat <= now {
		return 0
	}
	ahead := w.backlog.ahead(class)
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
	completed := d.circuit.Calls(&d.s.breaker, now).Completed
	if completed < uint64(d.s.breaker.MinimumCalls) {
		return 0
	}
	return float64(completed) / d.s.breaker.Window.Seconds()
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
	if d.circuit.State() != breaker.StateClosed || d.s.concurrency == 0 {
		return defaultDrainRate
	}
	w := d.waiting()
	if w.blind == stamp.Never {
		w.blind = at
	}
	return float64(d.limit()) * 1e9 / float64(max(at-w.blind, quickCall))
}

// quickCall is how long a call is supposed to take before one was answered.
const quickCall = int64(20 * time.Millisecond)

// plain says that there is nothing to ask or take but the permit: the destination is well and has no rate limit.
func (d *destination) plain(class Class) bool {
	s := d.s
	return d.circuit.Closed() && (d.opt == nil || d.opt.peer == nil && d.opt.wait == nil) && !s.rate.Limits() && s.total == nil &&
		(s.concurrency == 0 || d.out < class.of(d.limit()))
}

// places learns how many calls can be in flight: the most that anybody who calls has room for, within the limit on concurrency.
func (d *destination) places(now int64, n int) {
	if n <= 0 {
		return
	}
	if limit := int(d.s.concurrency); limit > 0 {
		n = min(n, limit)
	}
	if n > d.circuit.Places() {
		d.circuit.SetPlaces(now, n)
	}
}

// admit takes everything that a call needs, or nothing.
func (d *destination) admit(g *guard, now time.Time, retry bool, class Class) (Permit, Verdict) {
	at := stamp.Of(now)
	d.touch(at)
	if !retry && d.plain(class) && d.quick(at) {
		g.out++
		return Permit{g: g, d: d, trial: d.circuit.Trial(at), group: d.begin(at)}, Verdict{}
	}
	d.settled(at)
	if reason, wait := d.check(at, retry, class); reason != ReasonOK {
		return Permit{}, Verdict{Reason: reason, Wait: time.Duration(wait)}
	}
	step, held := d.circuit.RampHolds(&d.s.breaker, at)
	if held {
		return Permit{}, Verdict{Reason: ReasonBreakerOpen, Wait: rampHint}
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
	g.out++
	d.circuit.RampPass(step)
	d.tat = d.rate().Take(d.tat, at)
	last := budget.TryFirst
	if retry {
		last = budget.TryRetry
		d.balance.Take(&d.s.budget, last)
	}
	trial, ch := d.circuit.Admit(&d.s.breaker, at)
	d.notify(g, now, ch)
	return Permit{g: g, d: d, trial: trial, group: group, last: last}, Verdict{}
}

// notify queues a transition for the hook.
func (d *destination) notify(g *guard, now time.Time, ch breaker.Change) {
	if ch.Reason != "" {
		g.hooks.Push(ch.At(now, d.name))
	}
}

// reset closes the breaker and forgets what calls wait for.
func (d *destination) reset(at int64) breaker.Change {
	d.setTook(0)
	if w := d.waits(); w != nil {
		w.throttledUntil, w.backlog = stamp.Never, noBacklog
	}
	return d.circuit.Reset(at)
}

// touch remembers the last use in ticks; it wraps, like slots.
func (d *destination) touch(at int64) { d.used = tick(at) }

// tick numbers spans of 2^30 ns, a little more than a second: a shift costs a tenth of a division.
func tick(at int64) uint32 { return uint32(at >> 30) } //nolint:gosec // it wraps

// streakKept is how long failures in a row are remembered of a destination that is called now and then.
const streakKept = 24 * time.Hour

// evictable reports whether forgetting d loses nothing: closed, not overridden, no permit out, no throttle, ramp, deferred job or
// rate debt, and unused for longer than idle and the window. Where the last calls failed that is a day, unless room is needed.
func (d *destination) evictable(at int64, idle time.Duration, needed bool) bool {
	if d.circuit.State() != breaker.StateClosed || d.circuit.Override() != breaker.OverrideNone || d.out > 0 || d.tat > at {
		return false
	}
	idle = max(idle, d.s.breaker.Window)
	if !needed && d.circuit.InARow() > 0 {
		idle = max(idle, streakKept)
	}
	ticks := int32(tick(at)-d.used) - 1 // whole ones
	if time.Duration(ticks)<<30 <= idle {
		return false
	}
	return d.settled(at)
}

// configure changes the settings and keeps permits, state and counts.
func (d *destination) configure(at int64, s *settings) {
	d.circuit.Configure(&d.s.breaker, &s.breaker, at)
	d.circuit.SetPlaces(at, 0) // whoever calls next says it anew
	d.balance.Reset(&d.s.budget, &s.budget, at)
	if s.lane == nil {
		d.setLaned(false)
	}
	d.s = s
	if d.opt != nil {
		if s.limit == nil {
			d.opt.limit = adaptive.LimitState{}
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

// deferFor queues a deferred job. The queue spreads the jobs of one worker; jitter only keeps several workers apart. Under a rate limit the
// jitter is less than what the queue is slower than the limit: a job that comes too early for its token loses its turn, and the token with it.
func (d *destination) deferFor(at int64, hint time.Duration, class Class) time.Duration {
	s, w := d.s, d.waiting()
	last, place := stamp.Add(at, s.cap), int64(math.Ceil(1e9/d.drainRate(at)))
	due := w.backlog.join(class, stamp.Add(at, int64(max(hint, 0))), place, last)
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
	if d.circuit.State() == breaker.StateClosed {
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
