package pools

import (
	"slices"
	"time"
)

// circuit is the state machine of a breaker. Its owner holds a mutex around every call and tells the hooks afterwards.
type circuit struct {
	win *window   // nil until a call completed since the last transition
	tr  *degraded // nil for the healthy majority
	// gen rises with each transition and reset; results of an older generation are dropped.
	gen      uint32
	out      uint32 // permits out, whatever their generation
	old      uint32 // those of them in the older group
	state    State
	override Override
	group    uint8 // the older one: 0 or 1
	laned    bool  // the permits out are counted in the slow lane
}

// degraded is what only a destination needs that is, or was a moment ago, not simply closed.
type degraded struct {
	since          int64   // last transition
	openSince      int64   // when it left closed; never while closed
	until          int64   // open: when probes may start
	forced         int64   // when the override was set
	throttledUntil int64   // the destination asked to be left alone until then
	backlog        backlog // when the next deferred job of each class is due
	blind          int64   // when the first job was deferred before any call was answered
	probes         []int64 // starts of the probes that are out
	credit         uint32  // ramp: shares saved up, in 1/65536
	opens          uint8   // rounds of probes that failed in a row
	good, bad      uint8   // probes that reported
	ramping        bool
}

func (c *circuit) degrade() *degraded {
	if c.tr == nil {
		c.tr = &degraded{since: never, openSince: never, until: never, forced: never, throttledUntil: never, backlog: noBacklog, blind: never}
	}
	return c.tr
}

// settled drops trouble that is over.
func (c *circuit) settled(cfg *BreakerConfig, now int64) bool {
	t := c.tr
	if t == nil {
		return true
	}
	if c.state != StateClosed || c.override != OverrideNone || t.throttledUntil > now || t.backlog.end() > now || c.ramping(cfg, now) {
		return false
	}
	c.tr = nil
	return true
}

// change is a transition, for the hooks. The zero change is none.
type change struct {
	from, to State
	reason   TransitionReason
}

// probeHint is when to ask again while all probes are out: their results are not long in coming.
const probeHint = int64(time.Second)

// check tells whether the breaker would refuse a call, and for how long. It changes nothing.
func (c *circuit) check(cfg *BreakerConfig, now int64) (Reason, int64) {
	switch c.override {
	case OverrideOpen:
		return ReasonForcedOpen, int64(cfg.OpenFor)
	case OverrideClosed:
		return ReasonOK, 0
	}
	switch c.state {
	case StateOpen:
		if c.tr.until > now {
			return ReasonBreakerOpen, c.tr.until - now
		}
	case StateHalfOpen:
		live, first := c.tr.live(now - int64(cfg.ProbeLease))
		if live+int(c.tr.good)+int(c.tr.bad) >= cfg.Probes {
			return ReasonBreakerOpen, min(probeHint, first)
		}
	}
	return ReasonOK, 0
}

// live counts the probes that started after dead and tells how long the oldest of them still has.
func (t *degraded) live(dead int64) (n int, first int64) {
	first = probeHint
	for _, start := range t.probes {
		if start > dead {
			n++
			first = min(first, start-dead)
		}
	}
	return n, first
}

// admit tells what a call that check allowed is to the breaker.
func (c *circuit) admit(cfg *BreakerConfig, now int64) (probe bool, ch change) {
	if c.override == OverrideClosed || c.state == StateClosed {
		return false, change{}
	}
	if c.state == StateOpen {
		ch = c.move(now, StateHalfOpen, TransitionReasonOpenElapsed)
	}
	dead := now - int64(cfg.ProbeLease)
	c.tr.probes = slices.DeleteFunc(c.tr.probes, func(start int64) bool { return start <= dead })
	c.tr.probes = append(c.tr.probes, now)
	return true, ch
}

// ramping reports whether the breaker closed less than its ramp ago.
func (c *circuit) ramping(cfg *BreakerConfig, now int64) bool {
	return c.tr != nil && c.tr.ramping && c.state == StateClosed && now < add(c.tr.since, int64(cfg.Ramp))
}

// rampShare is the share of calls to admit now, in 1/65536.
func (c *circuit) rampShare(cfg *BreakerConfig, now int64) uint32 {
	elapsed := max(now-c.tr.since, 0)
	return max(rampFrom, uint32(float64(elapsed)/float64(cfg.Ramp)*rampAll))
}

// rampStep is what one call adds to the ramp's credit; 0 when no ramp stands in its way.
func (c *circuit) rampStep(cfg *BreakerConfig, now int64) uint32 {
	if c.override != OverrideNone || !c.ramping(cfg, now) {
		return 0
	}
	return c.rampShare(cfg, now)
}

// rampHolds reports whether a ramp holds back a call with this step. A held call counts towards the next one that passes:
// at a share of 10 % every tenth call does, exactly.
func (c *circuit) rampHolds(step uint32) bool {
	if step == 0 || c.tr.credit+step >= rampAll {
		return false
	}
	c.tr.credit += step
	return true
}

func (c *circuit) rampTake(step uint32) {
	if step > 0 {
		c.tr.credit = c.tr.credit + step - rampAll
	}
}

// report records the outcome of a call whose permit was given back.
func (c *circuit) report(s *settings, now int64, p *Permit, o Outcome) change {
	cfg := &s.breaker
	if p.gen != c.gen {
		return change{}
	}
	if o == OutcomeSuccess && cfg.SlowAfter > 0 && now-p.start > int64(cfg.SlowAfter) {
		o = OutcomeSlow
	}
	switch c.state {
	case StateClosed:
		return c.count(s, now, o)
	case StateHalfOpen:
		if p.probe {
			return c.probed(s, now, p.start, o)
		}
	}
	return change{}
}

// count records a call that completed while closed.
func (c *circuit) count(s *settings, now int64, o Outcome) change {
	cfg := &s.breaker
	if o == OutcomeIgnored {
		return change{}
	}
	n := slot(now, s.width)
	if c.win == nil {
		c.win = &window{head: n}
	}
	c.win.record(n, o)
	t := c.win.sum()
	if t.calls < uint64(cfg.MinimumCalls) {
		return change{}
	}
	switch {
	case t.reaches(t.failures, cfg.FailurePercent):
		return c.trip(s, now, TransitionReasonFailureRate)
	case t.reaches(t.slow, cfg.SlowPercent):
		return c.trip(s, now, TransitionReasonSlowRate)
	}
	return change{}
}

// probed records the result of a probe. A probe whose lease ran out has lost its slot and its voice.
func (c *circuit) probed(s *settings, now, start int64, o Outcome) change {
	cfg, t := &s.breaker, c.tr
	i := slices.Index(t.probes, start) // probes with the same start are interchangeable
	if i < 0 || start <= now-int64(cfg.ProbeLease) {
		return change{}
	}
	t.probes = slices.Delete(t.probes, i, i+1)
	switch {
	case o == OutcomeIgnored:
		return change{}
	case o == OutcomeFailure, o == OutcomeSlow && cfg.SlowPercent > 0:
		t.bad++
	default:
		t.good++
	}
	switch {
	case int(t.good) >= cfg.ProbesToClose:
		ch := c.move(now, StateClosed, TransitionReasonProbesSucceeded)
		t.ramping = cfg.Ramp > 0
		t.credit = rampAll // the first call after closing passes
		return ch
	case int(t.bad) > cfg.Probes-cfg.ProbesToClose:
		return c.trip(s, now, TransitionReasonProbesFailed)
	}
	return change{}
}

// trip opens the breaker. It opens for longer each time that probes or a ramp end in failure.
func (c *circuit) trip(s *settings, now int64, reason TransitionReason) change {
	again := c.state == StateHalfOpen || c.ramping(&s.breaker, now)
	ch := c.move(now, StateOpen, reason)
	t := c.tr
	switch {
	case !again:
		t.opens = 0
	case t.opens < 255:
		t.opens++
	}
	t.until = add(now, s.breaker.openTime(int(t.opens), s.rand()))
	return ch
}

// move enters a state with fresh counts.
func (c *circuit) move(now int64, to State, reason TransitionReason) change {
	t := c.degrade()
	ch := change{from: c.state, to: to, reason: reason}
	switch {
	case to == StateClosed:
		t.openSince = never
	case c.state == StateClosed:
		t.openSince = now
	}
	c.gen++
	c.state, c.win = to, nil
	t.since, t.probes, t.good, t.bad, t.ramping = now, nil, 0, 0, false
	return ch
}

// reset closes the breaker and forgets what it counted. The override stays.
func (c *circuit) reset(now int64) change {
	ch := c.move(now, StateClosed, TransitionReasonReset)
	c.tr.opens, c.tr.throttledUntil, c.tr.backlog = 0, never, noBacklog
	return ch
}

// force sets the override beside the state.
func (c *circuit) force(now int64, o Override) change {
	if c.override == o {
		return change{}
	}
	c.override = o
	reason := TransitionReasonOverrideCleared
	switch o {
	case OverrideOpen:
		reason = TransitionReasonForcedOpen
	case OverrideClosed:
		reason = TransitionReasonForcedClosed
	}
	c.degrade().forced = now
	return change{from: c.state, to: c.state, reason: reason}
}

// openSince is when the destination stopped taking calls: when it left closed or was forced open.
func (c *circuit) openSince() (int64, bool) {
	switch {
	case c.override == OverrideClosed:
		return 0, false
	case c.state != StateClosed && c.override == OverrideOpen:
		return min(c.tr.openSince, c.tr.forced), true
	case c.override == OverrideOpen:
		return c.tr.forced, true
	case c.state != StateClosed:
		return c.tr.openSince, true
	}
	return 0, false
}
