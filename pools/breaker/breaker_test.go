package breaker

import (
	"cmp"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

func half() float64 { return 0.5 } // the middle of every jitter

// rig is a breaker, its transitions and helpers that fail the test.
type rig struct {
	*Breaker
	t     *testing.T
	trail []Transition
}

// newRig returns one that stays open for 30 s unless cfg says otherwise.
func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	cfg.OpenFor, cfg.OpenGrowth = cmp.Or(cfg.OpenFor, 30*time.Second), cmp.Or(cfg.OpenGrowth, 1)
	cfg.OpenMax = cmp.Or(cfg.OpenMax, max(cfg.OpenFor, 15*time.Minute))
	r := &rig{t: t}
	b, err := newBreaker(cfg, half)
	if err != nil {
		t.Fatal(err)
	}
	b.OnTransition(func(tr Transition) { r.trail = append(r.trail, tr) })
	r.Breaker = b
	return r
}

func (r *rig) admit(now time.Time) Permit {
	r.t.Helper()
	p, v := r.Admit(now)
	if v > 0 {
		r.t.Fatalf("at %v: refused for %v", now.Sub(t0), v)
	}
	return p
}

func (r *rig) refused(now time.Time, want time.Duration) {
	r.t.Helper()
	if got := r.Peek(now); got != want {
		r.t.Errorf("at %v: Peek = %+v, want %+v", now.Sub(t0), got, want)
	}
	if _, got := r.Admit(now); got != want {
		r.t.Errorf("at %v: Admit = %+v, want %+v", now.Sub(t0), got, want)
	}
}

func (r *rig) calls(now time.Time, outcomes ...Outcome) {
	r.t.Helper()
	for _, o := range outcomes {
		p, v := r.Admit(now)
		if v > 0 {
			r.t.Fatalf("at %v: refused for %v", now.Sub(t0), v)
		}
		p.Done(now, o)
	}
}

func (r *rig) state(want State) {
	r.t.Helper()
	if got := r.State(); got != want {
		r.t.Fatalf("state %v, want %v", got, want)
	}
}

func times(n int, o Outcome) []Outcome {
	list := make([]Outcome, n)
	for i := range list {
		list[i] = o
	}
	return list
}

// opened returns a rig that opened at t0 and stays so for 30 s.
func opened(t *testing.T, cfg Config) *rig {
	t.Helper()
	r := newRig(t, cfg)
	r.calls(t0, times(min(r.rules.MinimumCalls, inARowMany), OutcomeFailure)...)
	r.state(StateOpen)
	return r
}

// mixed returns so many outcomes of each, one after the other, as long as there are both.
func mixed(bad, good int, o Outcome) (list []Outcome) {
	for ; bad > 0 || good > 0; bad, good = bad-1, good-1 {
		if bad > 0 {
			list = append(list, o)
		}
		if good > 0 {
			list = append(list, OutcomeSuccess)
		}
	}
	return list
}

func TestBreaker1CompletingTwiceIsANoOp(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{MinimumCalls: 2})
	p := r.admit(t0)
	p.Done(t0, OutcomeFailure)
	p.Done(t0, OutcomeFailure)
	p.Cancel(t0)
	r.state(StateClosed)
	if s := r.Snapshot(t0); s.Failures != 1 || s.InUse != 0 {
		t.Errorf("after a double completion: %+v", s)
	}
	var zero Permit
	zero.Done(t0, OutcomeFailure)
	zero.Cancel(t0)
	if v := zero.Retry(t0); v != 0 {
		t.Errorf("zero permit: %+v", v)
	}
}

func TestBreaker1ConcurrentCompletionCountsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	p := r.admit(t0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { p.Done(t0, OutcomeSuccess) })
	}
	wg.Wait()
	if s := r.Snapshot(t0); s.Calls != 1 || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
}

func TestBreaker1IgnoredMovesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{MinimumCalls: 5})
	r.calls(t0, times(100, OutcomeIgnored)...)
	if s := r.Snapshot(t0); s.Calls != 0 {
		t.Errorf("ignored calls were counted: %+v", s)
	}

	r = opened(t, Config{Probes: 1})
	now := at(30 * time.Second)
	for range 10 { // each gives its slot back and neither closes nor opens
		p := r.admit(now)
		r.refused(now, time.Second)
		p.Done(now, OutcomeIgnored)
		r.state(StateHalfOpen)
	}
}

func TestBreaker1SlowCalls(t *testing.T) {
	t.Parallel()
	cfg := Config{MinimumCalls: 4, FailurePercent: new(0), SlowPercent: new(50), SlowAfter: new(time.Second)}
	r := newRig(t, cfg)
	for _, took := range []time.Duration{time.Second, time.Second, time.Second + 1, time.Second + 1} {
		r.state(StateClosed)
		p := r.admit(t0)
		p.Done(t0.Add(took), OutcomeSuccess)
	}
	r.state(StateOpen)
	want := []Transition{{From: StateClosed, To: StateOpen, Reason: TransitionReasonSlowRate, At: t0.Add(time.Second + 1)}}
	if diff := gocmp.Diff(want, r.trail); diff != "" {
		t.Error(diff)
	}

	r = newRig(t, cfg)
	r.calls(t0, times(50, OutcomeFailure)...) // never opens for failures
	r.state(StateClosed)
	cfg.SlowPercent, cfg.FailurePercent = new(0), new(50)
	r = newRig(t, cfg)
	r.calls(t0, times(50, OutcomeSlow)...)
	r.state(StateClosed)
}

func TestBreaker2ResultsOfAnOlderGenerationAreDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{MinimumCalls: 2, Probes: 2, ProbesToClose: 1})
	var late []Permit
	for range 5 {
		late = append(late, r.admit(t0))
	}
	r.calls(t0, times(5, OutcomeFailure)...) // as many as nothing was heard of yet
	r.state(StateOpen)
	late[0].Done(at(time.Second), OutcomeSuccess)
	r.state(StateOpen)

	now := at(30 * time.Second)
	probe := r.admit(now)
	late[1].Done(now, OutcomeFailure) // of the closed state: must not fail the probing
	late[2].Done(now, OutcomeSuccess) // nor pass it
	r.state(StateHalfOpen)
	probe.Done(now, OutcomeSuccess)
	r.state(StateClosed)

	late[3].Done(now, OutcomeFailure)
	if s := r.Snapshot(now); s.Calls != 0 {
		t.Errorf("late result was counted: %+v", s)
	}
	p := r.admit(now)
	r.Reset(now)
	p.Done(now, OutcomeFailure)
	late[4].Done(now, OutcomeFailure)
	if s := r.Snapshot(now); s.Calls != 0 || s.InUse != 0 {
		t.Errorf("result from before the reset was counted: %+v", s)
	}
}

func TestBreaker3LostProbeFreesItsSlot(t *testing.T) {
	t.Parallel()
	r := opened(t, Config{Probes: 2, ProbesToClose: 2, ProbeLease: 10 * time.Second})
	lost := r.admit(at(30 * time.Second))
	kept := r.admit(at(31 * time.Second))
	r.refused(at(40*time.Second-1), 1)
	second := r.admit(at(40 * time.Second)) // in the place of the lost one
	r.refused(at(40*time.Second), time.Second)

	lost.Done(at(40*time.Second), OutcomeFailure) // too late to have a say
	r.state(StateHalfOpen)
	kept.Done(at(40*time.Second), OutcomeSuccess)
	second.Done(at(41*time.Second), OutcomeSuccess)
	r.state(StateClosed)
	if n := r.Snapshot(at(41 * time.Second)).InUse; n != 0 {
		t.Errorf("%d permits out", n)
	}
}

func TestBreaker3LateProbeHasNoSayThoughNobodyTookItsSlot(t *testing.T) {
	t.Parallel()
	for _, o := range []Outcome{OutcomeSuccess, OutcomeFailure} {
		r := opened(t, Config{Probes: 1, ProbeLease: 10 * time.Second})
		late := r.admit(at(30 * time.Second))
		late.Done(at(40*time.Second), o)
		r.state(StateHalfOpen)
		r.calls(at(40*time.Second), OutcomeSuccess)
		r.state(StateClosed)
	}
}

func TestBreaker4ThresholdIsExact(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		cfg        Config
		good, bad  int
		want       State
		badOutcome Outcome
	}{
		{name: "9,999 of 20,000", cfg: Config{MinimumCalls: 20_000}, good: 10_001, bad: 9_999, want: StateClosed},
		{name: "10,000 of 20,000", cfg: Config{MinimumCalls: 20_000}, good: 10_000, bad: 10_000, want: StateOpen},
		{name: "slow 9,999", cfg: Config{MinimumCalls: 20_000}, good: 10_001, bad: 9_999, want: StateClosed, badOutcome: OutcomeSlow},
		{name: "slow 10,000", cfg: Config{MinimumCalls: 20_000}, good: 10_000, bad: 10_000, want: StateOpen, badOutcome: OutcomeSlow},
		{name: "beyond 16 bits, below", cfg: Config{MinimumCalls: 140_000}, good: 70_001, bad: 69_999, want: StateClosed},
		{name: "beyond 16 bits, at", cfg: Config{MinimumCalls: 140_000}, good: 70_000, bad: 70_000, want: StateOpen},
		{name: "one short of the minimum", cfg: Config{}, good: 11, bad: 12, want: StateClosed},
		{name: "at the minimum", cfg: Config{}, good: 12, bad: 12, want: StateOpen},
		{name: "one short of in a row", cfg: Config{}, bad: 9, want: StateClosed},
		{name: "in a row", cfg: Config{}, bad: 10, want: StateOpen},
		{name: "a third, rounded", cfg: Config{FailurePercent: new(34), MinimumCalls: 3}, good: 2, bad: 1, want: StateClosed},
		{name: "a third", cfg: Config{FailurePercent: new(33), MinimumCalls: 3}, good: 2, bad: 1, want: StateOpen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.cfg)
			if tt.badOutcome == OutcomeIgnored {
				tt.badOutcome = OutcomeFailure
			}
			r.calls(t0, mixed(tt.bad, tt.good, tt.badOutcome)...) // a success completes the minimum, where there is one
			r.state(tt.want)
		})
	}
}

func TestBreaker4CountsByCompletionTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{MinimumCalls: 2, Window: 10 * time.Second})
	old := r.admit(t0)
	r.calls(at(59*time.Second), OutcomeFailure)
	old.Done(at(60*time.Second), OutcomeFailure) // started a minute ago, completed now
	r.state(StateOpen)

	r = newRig(t, Config{MinimumCalls: 2, Window: 10 * time.Second})
	r.calls(t0, OutcomeFailure)
	r.calls(at(10*time.Second), OutcomeFailure) // the first has left the window
	r.state(StateClosed)
	r.calls(at(11*time.Second), OutcomeFailure)
	r.state(StateOpen)
}

func TestBreaker4ClockThatRunsBackwards(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{MinimumCalls: 3})
	r.calls(at(time.Minute), OutcomeFailure)
	r.calls(t0, OutcomeFailure)
	r.calls(at(-time.Hour), OutcomeFailure)
	r.state(StateOpen)
}

func TestBreaker5ExactlyNProbesUnderManyCallers(t *testing.T) {
	t.Parallel()
	r := opened(t, Config{})
	now := at(30 * time.Second)
	r.refused(now.Add(-1), 1)
	var (
		mu     sync.Mutex
		probes []*Permit
		wg     sync.WaitGroup
	)
	for range 64 {
		wg.Go(func() {
			for range 20 {
				if p, v := r.Admit(now); v == 0 {
					mu.Lock()
					probes = append(probes, &p)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if len(probes) != 5 {
		t.Fatalf("%d probes, want 5", len(probes))
	}
	for i, p := range probes[:4] {
		r.state(StateHalfOpen)
		p.Done(now, OutcomeSuccess)
		if i < 3 { // a slot that was used is not handed out again
			r.refused(now, time.Second)
		}
	}
	r.state(StateClosed)
	probes[4].Done(now, OutcomeFailure) // of the older generation
	r.state(StateClosed)
}

func TestBreaker5KOfN(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		outcomes []Outcome
		want     State
	}{
		{"four successes close", []Outcome{OutcomeSuccess, OutcomeSuccess, OutcomeSuccess, OutcomeSuccess}, StateClosed},
		{"one failure is forgiven", []Outcome{OutcomeSuccess, OutcomeFailure, OutcomeSuccess, OutcomeSuccess, OutcomeSuccess}, StateClosed},
		{"a slow one too", []Outcome{OutcomeSlow, OutcomeSuccess, OutcomeSuccess, OutcomeSuccess, OutcomeSuccess}, StateClosed},
		{"two failures open", []Outcome{OutcomeSuccess, OutcomeSuccess, OutcomeSuccess, OutcomeFailure, OutcomeFailure}, StateOpen},
		{"failure and slow open", []Outcome{OutcomeFailure, OutcomeSlow}, StateOpen},
		{"ignored are made up for", []Outcome{OutcomeIgnored, OutcomeSuccess, OutcomeIgnored, OutcomeSuccess, OutcomeSuccess, OutcomeIgnored, OutcomeSuccess}, StateClosed},
		{"three are not enough", []Outcome{OutcomeSuccess, OutcomeSuccess, OutcomeSuccess}, StateHalfOpen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := opened(t, Config{})
			r.calls(at(30*time.Second), tt.outcomes...)
			r.state(tt.want)
		})
	}
}

func TestBreaker6OpenTimeGrowsAndIsBounded(t *testing.T) {
	t.Parallel()
	cfg := Config{OpenFor: time.Second, OpenGrowth: 2, OpenMax: 10 * time.Second, Probes: 1}.WithDefaults()
	for _, tt := range []struct {
		n    int
		u    float64
		want time.Duration
	}{
		{0, 0.5, time.Second},
		{1, 0.5, 2 * time.Second},
		{3, 0.5, 8 * time.Second},
		{4, 0.5, 10 * time.Second},
		{255, 0.5, 10 * time.Second},
		{math.MaxInt, 0.5, 10 * time.Second},
		{0, 0, 800 * time.Millisecond},
		{4, 0, 8 * time.Second},
		{4, 0.75, 11 * time.Second},
	} {
		if got := time.Duration(cfg.openTime(tt.n, tt.u)); (got - tt.want).Abs() > time.Microsecond {
			t.Errorf("openTime(%d, %v) = %v, want %v", tt.n, tt.u, got, tt.want)
		}
	}
	cfg.OpenMax = math.MaxInt64
	if got := cfg.openTime(math.MaxInt, 0.999); got != math.MaxInt64 {
		t.Errorf("overflow: %d", got)
	}

	r := opened(t, Config{OpenFor: time.Second, OpenGrowth: 2, OpenMax: 3 * time.Second, Probes: 1})
	now := t0
	for _, open := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		r.refused(now, open)
		now = now.Add(open)
		r.calls(now, OutcomeFailure)
	}
	now = now.Add(3 * time.Second)
	r.calls(now, OutcomeSuccess)
	r.state(StateClosed)
	r.calls(now, times(inARowMany, OutcomeFailure)...)
	r.refused(now, time.Second) // a good round starts it over
}

func TestBreaker6FarFuture(t *testing.T) {
	t.Parallel()
	r := opened(t, Config{OpenFor: math.MaxInt64, OpenMax: math.MaxInt64})
	if v := r.Peek(at(1000 * time.Hour)); v <= 0 {
		t.Errorf("%+v", v)
	}
}

func TestBreaker6RampAdmitsAGrowingShare(t *testing.T) {
	t.Parallel()
	r := opened(t, Config{Probes: 1, Ramp: new(100 * time.Second)})
	closed := at(30 * time.Second)
	r.calls(closed, OutcomeSuccess)
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 100}, {10 * time.Second, 100}, {50 * time.Second, 500}, {90 * time.Second, 900}, {100 * time.Second, 1000}} {
		now, admitted := closed.Add(tt.after), 0
		for range 1000 {
			p, v := r.Admit(now)
			if v == 0 {
				admitted++
				p.Done(now, OutcomeSuccess)
			}
		}
		if admitted < tt.want-1 || admitted > tt.want+1 {
			t.Errorf("after %v: %d of 1000 admitted, want %d", tt.after, admitted, tt.want)
		}
	}
}

func TestBreaker6FailingInTheRampGrowsTheOpenTime(t *testing.T) {
	t.Parallel()
	cfg := Config{Probes: 1, Ramp: new(100 * time.Second), OpenGrowth: 2, MinimumCalls: 1}
	r := opened(t, cfg)
	r.calls(at(30*time.Second), OutcomeSuccess, OutcomeFailure)
	r.refused(at(30*time.Second), time.Minute)

	r = opened(t, cfg)
	r.calls(at(30*time.Second), OutcomeSuccess)
	r.calls(at(130*time.Second), OutcomeFailure) // the ramp was over
	r.refused(at(130*time.Second), 30*time.Second)
}

func TestBreaker7HooksAreOrderedAndMayPanicOrCallBack(t *testing.T) {
	t.Parallel()
	var trail []TransitionReason
	b, err := newBreaker(Config{MinimumCalls: 1}, half)
	if err != nil {
		t.Fatal(err)
	}
	b.OnTransition(func(tr Transition) {
		trail = append(trail, tr.Reason)
		if tr.Reason == TransitionReasonFailureRate {
			b.Force(t0, OverrideClosed) // calls back: its own transition comes after this one
			b.Reset(t0)
			trail = append(trail, "end of hook")
		}
		if tr.Reason == TransitionReasonForcedClosed {
			panic("hook")
		}
	})
	p, _ := b.Admit(t0)
	p.Done(t0, OutcomeFailure)
	want := []TransitionReason{TransitionReasonFailureRate, "end of hook", TransitionReasonForcedClosed, TransitionReasonReset}
	if diff := gocmp.Diff(want, trail); diff != "" {
		t.Error(diff)
	}
	if n := b.HookPanics(); n != 1 {
		t.Errorf("%d panics counted", n)
	}
}

func TestBreaker8OverrideStandsBesideTheState(t *testing.T) {
	t.Parallel()
	r := opened(t, Config{Probes: 1})
	now := at(time.Second)
	r.Force(now, OverrideClosed)
	r.calls(now, times(50, OutcomeFailure)...) // admitted, and of no account while open
	r.state(StateOpen)
	r.Force(now, OverrideNone)
	r.refused(now, 29*time.Second)

	r.Force(now, OverrideOpen)
	r.refused(at(time.Hour), 30*time.Second)
	r.state(StateOpen)
	r.Reset(at(time.Hour))
	r.state(StateClosed)
	r.refused(at(time.Hour), 30*time.Second) // reset does not lift it
	r.Force(at(time.Hour), OverrideNone)
	r.calls(at(time.Hour), OutcomeSuccess)
	r.state(StateClosed)
}

func TestBreakerConfigIsChecked(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		"failure percent": {FailurePercent: new(101)}, "slow percent": {SlowPercent: new(101)}, "window": {Window: time.Millisecond},
		"minimum calls": {MinimumCalls: -1}, "hung after": {HungAfter: new(-time.Second)}, "open for": {OpenFor: -1}, "open growth": {OpenGrowth: 0.5},
		"open max": {OpenFor: time.Minute, OpenMax: time.Second}, "open jitter": {OpenJitter: new(1.0)}, "probes 101": {Probes: 101},
		"probes to close": {Probes: 2, ProbesToClose: 3}, "probe lease": {ProbeLease: -1},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestDefaultsAndPresets(t *testing.T) {
	t.Parallel()
	d := Config{}.WithDefaults()
	if *d.FailurePercent != 50 || *d.SlowPercent != 50 || d.Window != 30*time.Second || d.MinimumCalls != 24 || d.OpenFor != 5*time.Second ||
		*d.OpenJitter != 0.2 || d.OpenGrowth != 1.5 || d.OpenMax != 30*time.Second || *d.HungAfter != 4*time.Second || d.Probes != 5 || d.ProbesToClose != 4 {
		t.Errorf("%+v", d)
	}
	if n := Optional().WithDefaults().MinimumCalls; n != 92 {
		t.Errorf("at 25 %%: a minimum of %d calls", n)
	}
	for _, c := range []Config{{}, Webhook(), Critical(), Optional()} {
		if err := c.WithDefaults().Validate(); err != nil {
			t.Error(err)
		}
	}
	for normal, want := range map[float64]int{0: 25, 0.001: 25, 0.02: 25, 0.03: 30, 0.06: 60, 0.5: 80} {
		if got := FailurePercentFor(normal); got != want {
			t.Errorf("FailurePercentFor(%v) = %d, want %d", normal, got, want)
		}
	}
}
