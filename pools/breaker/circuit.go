package breaker

import (
	"slices"
	"time"

	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Circuit is the state machine of a breaker in few bytes, for an owner that has a lock: most programs want [Breaker]. The zero Circuit is
// closed. Times are nanoseconds since any fixed moment.
type Circuit struct {
	win    *window   // nil until a call completed since the last transition
	deg    *degraded // nil for the healthy majority
	streak streak
	// gen rises with each transition and reset; results of an older generation are dropped.
	gen      uint32
	places   uint16 // how many calls can be in flight; 0 if nobody knows
	state    State
	override Override
}

// degraded is what only a breaker needs that is, or was a moment ago, not simply closed.
type degraded struct {
	since     int64   // last transition
	openSince int64   // when it left closed; no time while closed
	until     int64   // open: when probes may start
	forced    int64   // when the override was set
	probes    []int64 // starts of the probes that are out
	credit    uint32  // ramp: shares saved up, in 1/65536
	opens     uint8   // rounds of probes that failed in a row
	good, bad uint8   // probes that reported
	ramping   bool
}

func (c *Circuit) degrade() *degraded {
	if c.deg == nil {
		c.deg = &degraded{since: stamp.Never, openSince: stamp.Never, until: stamp.Never, forced: stamp.Never}
	}
	return c.deg
}

// Trial is one call as the circuit sees it.
type Trial struct {
	start  int64
	gen    uint32
	number uint32
	probe  bool
}

// Start is when the call was admitted.
func (t Trial) Start() int64 { return t.start }

// State is the current state. An open breaker whose time is over stays open until the first probe asks.
func (c *Circuit) State() State { return c.state }

// Override is the operator's word.
func (c *Circuit) Override() Override { return c.override }

// Closed reports that nothing is to be asked: closed, not overridden, no ramp, and the last call was answered.
func (c *Circuit) Closed() bool {
	return c.deg == nil && c.state == StateClosed && c.override == OverrideNone && (c.win == nil || c.win.endings == nil)
}

// FailedRounds is how often in a row the probes failed.
func (c *Circuit) FailedRounds() int {
	if c.deg == nil {
		return 0
	}
	return int(c.deg.opens)
}

// Settle drops what is over, and reports whether nothing is left but counts.
func (c *Circuit) Settle(r *Rules, now int64) bool {
	if c.deg == nil {
		return true
	}
	if c.state != StateClosed || c.override != OverrideNone || c.ramping(r, now) {
		return false
	}
	c.deg = nil
	return true
}

// Change is a transition. The zero Change is none.
type Change struct {
	From, To State
	Reason   TransitionReason
}

// At returns the change as a [Transition] of a destination.
func (ch Change) At(now time.Time, destination string) Transition {
	return Transition{Destination: destination, From: ch.From, To: ch.To, Reason: ch.Reason, At: now}
}

// probeHint is when to ask again while calls are out whose results are waited for: they are not long in coming.
const probeHint = int64(time.Second)

// Check returns how long calls are refused while so many are in flight; 0 if the next one may be admitted. It changes nothing.
func (c *Circuit) Check(cfg *Rules, now int64, out int) time.Duration {
	switch c.override {
	case OverrideOpen:
		return cfg.OpenFor
	case OverrideClosed:
		return 0
	}
	switch c.state {
	case StateClosed:
		if c.holds(cfg, out) {
			return time.Duration(probeHint)
		}
	case StateOpen:
		return time.Duration(max(c.deg.until-now, 0))
	case StateHalfOpen:
		live, first := c.deg.live(now - int64(cfg.ProbeLease))
		if live+int(c.deg.good)+int(c.deg.bad) >= cfg.Probes {
			return time.Duration(min(probeHint, first))
		}
	}
	return 0
}

// Overtaken returns how long another try of a call is refused because the breaker has opened since the call was admitted.
func (c *Circuit) Overtaken(cfg *Rules, now int64, t Trial) time.Duration {
	switch {
	case c.override == OverrideOpen:
		return cfg.OpenFor
	case c.override == OverrideNone && t.gen != c.gen && c.state != StateClosed:
		return max(c.Check(cfg, now, 0), time.Duration(probeHint))
	}
	return 0
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

// Admit admits a call that Check allowed and no ramp holds back.
func (c *Circuit) Admit(cfg *Rules, now int64) (t Trial, ch Change) {
	if c.override == OverrideClosed || c.state == StateClosed {
		return c.Trial(now), Change{}
	}
	if c.state == StateOpen {
		ch = c.move(now, StateHalfOpen, TransitionReasonOpenElapsed)
	}
	dead := now - int64(cfg.ProbeLease)
	c.deg.probes = slices.DeleteFunc(c.deg.probes, func(start int64) bool { return start <= dead })
	c.deg.probes = append(c.deg.probes, now)
	return Trial{start: now, gen: c.gen, probe: true}, ch
}

// Trial is a call that is admitted while Closed.
func (c *Circuit) Trial(now int64) Trial { return Trial{start: now, gen: c.gen, number: c.begin(now)} }

// ramping reports whether the breaker closed less than its ramp ago.
func (c *Circuit) ramping(cfg *Rules, now int64) bool {
	return c.deg != nil && c.deg.ramping && c.state == StateClosed && now < stamp.Add(c.deg.since, cfg.ramp)
}

// rampShare is the share of calls to admit now, in 1/65536.
func (c *Circuit) rampShare(cfg *Rules, now int64) uint32 {
	elapsed := max(now-c.deg.since, 0)
	return max(rampFrom, uint32(float64(elapsed)/float64(cfg.ramp)*rampAll))
}

// RampHolds reports whether a ramp holds back a call. A held call counts towards the next one that passes: at a share of 10 % every
// tenth call does, exactly. The step of a call that passes goes to RampPass once nothing else refuses it.
func (c *Circuit) RampHolds(cfg *Rules, now int64) (step uint32, held bool) {
	if c.override != OverrideNone || !c.ramping(cfg, now) {
		return 0, false
	}
	step = c.rampShare(cfg, now)
	if c.deg.credit+step >= rampAll {
		return step, false
	}
	c.deg.credit += step
	return step, true
}

// RampPass charges the ramp for a call that passes.
func (c *Circuit) RampPass(step uint32) {
	if step > 0 {
		c.deg.credit = c.deg.credit + step - rampAll
	}
}

// Report records the outcome of a call. Results of an earlier state are dropped.
func (c *Circuit) Report(cfg *Rules, now int64, t Trial, o Outcome) Change {
	if t.gen != c.gen {
		return Change{}
	}
	if o == OutcomeSuccess && cfg.slowAfter > 0 && now-t.start > cfg.slowAfter {
		o = OutcomeSlow
	}
	switch c.state {
	case StateClosed:
		return c.count(cfg, now, t, o)
	case StateHalfOpen:
		if t.probe {
			return c.probed(cfg, now, t.start, o)
		}
	}
	return Change{}
}

// Count records a call that completed and was not asked for. Unless the breaker is closed it is not counted.
func (c *Circuit) Count(cfg *Rules, now int64, o Outcome) Change {
	if o == OutcomeIgnored || c.state != StateClosed {
		return Change{}
	}
	return c.count(cfg, now, c.Trial(now), o)
}

func (c *Circuit) count(cfg *Rules, now int64, t Trial, o Outcome) Change {
	n := stamp.Slot(now, cfg.width)
	if c.win == nil {
		c.win = &window{head: n}
	}
	if o == OutcomeIgnored { // it may have parted failures that are in a row now
		return c.judgeRun(cfg, now, c.ended(now, t.number, true))
	}
	c.win.record(n, o)
	run := uint32(0)
	if o == OutcomeFailure {
		run = c.ended(now, t.number, false)
	} else {
		c.answered(now, t.number, now-t.start)
	}
	if sum := c.win.sum(); sum.calls >= uint64(cfg.MinimumCalls) { //nolint:gosec // at least 1
		sum.calls += uint64(c.unheard()) // else quick failures would be compared with the few answers that are as quick
		switch {
		case sum.reaches(sum.failures, cfg.failures):
			return c.trip(cfg, now, TransitionReasonFailureRate)
		case sum.reaches(sum.slow, cfg.slow):
			return c.trip(cfg, now, TransitionReasonSlowRate)
		}
	}
	return c.judgeRun(cfg, now, run)
}

// judgeRun opens the breaker if that many failures in a row are enough.
func (c *Circuit) judgeRun(cfg *Rules, now int64, run uint32) Change {
	if cfg.failures == 0 || run < c.enough() || run < c.needed(cfg) {
		return Change{}
	}
	return c.trip(cfg, now, TransitionReasonFailuresInARow)
}

// probed records the result of a probe. The result of one whose lease ran out is ignored.
func (c *Circuit) probed(cfg *Rules, now, start int64, o Outcome) Change {
	t := c.deg
	i := slices.Index(t.probes, start) // probes with the same start are interchangeable
	if i < 0 || start <= now-int64(cfg.ProbeLease) {
		return Change{}
	}
	t.probes = slices.Delete(t.probes, i, i+1)
	switch {
	case o == OutcomeIgnored:
		return Change{}
	case o == OutcomeFailure, o == OutcomeSlow && cfg.slow > 0:
		t.bad++
	default:
		t.good++
	}
	switch {
	case int(t.good) >= cfg.ProbesToClose:
		ch := c.move(now, StateClosed, TransitionReasonProbesSucceeded)
		t.ramping = cfg.ramp > 0
		t.credit = rampAll // the first call after closing passes
		return ch
	case int(t.bad) > cfg.Probes-cfg.ProbesToClose:
		return c.trip(cfg, now, TransitionReasonProbesFailed)
	}
	return Change{}
}

// trip opens the breaker. It opens for longer each time that probes or a ramp end in failure.
func (c *Circuit) trip(cfg *Rules, now int64, reason TransitionReason) Change {
	again := c.state == StateHalfOpen || c.ramping(cfg, now)
	ch := c.move(now, StateOpen, reason)
	t := c.deg
	switch {
	case !again:
		t.opens = 0
	case t.opens < 255:
		t.opens++
	}
	t.until = stamp.Add(now, cfg.openTime(int(t.opens), cfg.random()))
	return ch
}

// move enters a state with fresh counts.
func (c *Circuit) move(now int64, to State, reason TransitionReason) Change {
	t := c.degrade()
	ch := Change{From: c.state, To: to, Reason: reason}
	switch {
	case to == StateClosed:
		t.openSince = stamp.Never
	case c.state == StateClosed:
		t.openSince = now
	}
	c.gen++
	c.state, c.win = to, nil
	c.streak = streak{longest: c.streak.longest}
	t.since, t.probes, t.good, t.bad, t.ramping = now, nil, 0, 0, false
	return ch
}

// Reset closes the breaker and forgets what it counted. The override stays.
func (c *Circuit) Reset(now int64) Change {
	ch := c.move(now, StateClosed, TransitionReasonReset)
	c.deg.opens = 0
	return ch
}

// Force sets the override beside the state.
func (c *Circuit) Force(now int64, o Override) Change {
	if c.override == o {
		return Change{}
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
	return Change{From: c.state, To: c.state, Reason: reason}
}

// OpenSince is when it stopped taking calls: when it left closed or was forced open.
func (c *Circuit) OpenSince() (int64, bool) {
	switch {
	case c.override == OverrideClosed:
		return 0, false
	case c.state != StateClosed && c.override == OverrideOpen:
		return min(c.deg.openSince, c.deg.forced), true
	case c.override == OverrideOpen:
		return c.deg.forced, true
	case c.state != StateClosed:
		return c.deg.openSince, true
	}
	return 0, false
}

// Calls sums the calls that completed in the window.
func (c *Circuit) Calls(cfg *Rules, now int64) Calls {
	t := c.win.tally(stamp.Slot(now, cfg.width))
	return Calls{Completed: t.calls, Failed: t.failures, Slow: t.slow}
}

// Calls counts completed calls.
type Calls struct{ Completed, Failed, Slow uint64 }

// Counting reports whether a call has completed since the last transition.
func (c *Circuit) Counting() bool { return c.win != nil }

// Configure keeps the counts when the rules change.
func (c *Circuit) Configure(from, to *Rules, now int64) {
	if c.win != nil && to.width != from.width {
		c.win.tally(stamp.Slot(now, from.width))
		c.win.rebase(stamp.Slot(now, to.width))
	}
}
