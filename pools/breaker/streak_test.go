package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// TestChanceOpensNoBreaker : at 5 % of failures, chance opens a breaker less than once in 100 months, by formula.
func TestChanceOpensNoBreaker(t *testing.T) {
	t.Parallel()
	perMonths := func(rate float64, run int) float64 { return rate * calm * (1 - rare) * math.Pow(rare, float64(run)) }
	for _, rate := range []float64{0.01, 1, inARowRate} {
		if n := perMonths(rate, inARow); n >= 1 {
			t.Errorf("%d in a row at %v/s: %.2f times in 100 months", inARow, rate, n)
		}
	}
	if n := perMonths(2000, inARow+1); n >= 1 {
		t.Errorf("%d in a row: %.2f times", inARow+1, n)
	}
	if n := perMonths(30_000, inARowMany); n >= 1 {
		t.Errorf("%d in a row: %.2f times", inARowMany, n)
	}
	// The exact tail of the binomial distribution is below Chernoff's bound.
	for _, percent := range []int{20, 25, 50, 60, 80, 100} {
		for _, window := range []time.Duration{time.Second, 30 * time.Second, 10 * time.Minute} {
			n := minimumFor(percent, window)
			least := (n*percent + 99) / 100
			share := 0.0
			for k := least; k <= n; k++ {
				share += math.Exp(logChoose(n, k) + float64(k)*math.Log(rare) + float64(n-k)*math.Log(1-rare))
			}
			if times := share * float64(n) / window.Seconds() * calm; times >= 1 {
				t.Errorf("%d %% of %d calls within %v: %.2f times", percent, n, window, times)
			}
		}
	}
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// TestAgeTells : calls that hang open the breaker long before they end, unless answers may take as long.
func TestAgeTells(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		cfg     Config
		answers time.Duration // how long the one before takes; 0 if there was none
		hang    int
		after   time.Duration
		armed   time.Duration // since when ages count
		want    State
	}{
		{name: "older than 4 s", answers: time.Second, hang: 10, after: 4100 * time.Millisecond, want: StateOpen},
		{name: "younger", answers: time.Second, hang: 10, after: 3900 * time.Millisecond, want: StateClosed},
		{name: "too few", answers: time.Second, hang: 9, after: time.Hour, want: StateClosed},
		{name: "answers take long", answers: time.Minute, hang: 10, after: 119 * time.Second, want: StateClosed},
		{name: "longer than twice that", answers: time.Minute, hang: 10, after: 121 * time.Second, want: StateOpen},
		{name: "nothing known of answers", hang: 10, after: time.Hour, want: StateClosed},
		{name: "switched off", cfg: Config{HungAfter: new(time.Duration(0))}, answers: time.Second, hang: 10, after: time.Hour, want: StateClosed},
		{name: "failures never open it", cfg: Config{FailurePercent: new(0)}, answers: time.Second, hang: 10, after: time.Hour, want: StateClosed},
		{name: "the process stood still", answers: time.Second, hang: 10, after: time.Minute, armed: 57 * time.Second, want: StateClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tt.cfg)
			if tt.answers > 0 {
				p := r.admit(at(-tt.answers))
				p.Done(t0, OutcomeSuccess)
			}
			for range tt.hang {
				r.admit(t0)
			}
			now := stamp.Of(at(tt.after))
			r.circuit.Judge(&r.rules, now, stamp.Of(at(tt.armed)))
			r.state(tt.want)
		})
	}
}

// TestIgnoredCallsDoNotPartARun : what says nothing is left out of the row, and a call in flight is not.
func TestIgnoredCallsDoNotPartARun(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.calls(t0, times(5, OutcomeFailure)...)
	between := r.admit(t0)
	r.calls(t0, OutcomeIgnored)
	r.calls(t0, times(5, OutcomeFailure)...)
	r.state(StateClosed) // the one between may be answered yet
	between.Done(t0, OutcomeIgnored)
	r.state(StateOpen)
	if reason := r.trail[0].Reason; reason != TransitionReasonFailuresInARow {
		t.Error(reason)
	}
}

// TestEndingsAreBounded : a destination that only ever throttles costs no memory.
func TestEndingsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.calls(t0, times(1000, OutcomeIgnored)...)
	if e := r.circuit.endings(); e != nil {
		t.Errorf("%d kept", len(e.calls))
	}
	r.admit(t0) // in flight, before all others
	for range 5000 {
		r.calls(t0, OutcomeIgnored)
		if e := r.circuit.endings(); e != nil && len(e.calls) > mostEndings {
			t.Fatalf("%d kept", len(e.calls))
		}
	}
}

// TestSuspicionIsCheap : while failures are in a row, no more calls are let in than opening takes.
func TestSuspicionIsCheap(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.SetPlaces(t0, 4)
	var out []*Permit
	for range 4 {
		p := r.admit(t0)
		out = append(out, &p)
	}
	spent := 4
	for len(out) > 0 {
		out[0].Done(t0, OutcomeFailure)
		out = out[1:]
		if p, wait := r.Admit(t0); wait == 0 {
			out = append(out, &p)
			spent++
		}
	}
	r.state(StateOpen)
	if spent != 8 {
		t.Errorf("%d calls were spent", spent)
	}
}

// TestReach : how many calls of a destination that hangs a window holds.
func TestReach(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		window  time.Duration
		places  int
		timeout time.Duration
		want    int
	}{
		{30 * time.Second, 4, 30 * time.Second, 4},
		{30 * time.Second, 6, 10 * time.Second, 18},
		{30 * time.Second, 8, 10 * time.Second, 24},
		{10 * time.Minute, 1, 30 * time.Second, 19},
		{30 * time.Second, 2, time.Hour, 2},
		{30 * time.Second, 0, time.Second, math.MaxInt},
		{time.Hour, 1, 1, math.MaxInt},
	} {
		if got := (Config{Window: tt.window}).Reach(tt.places, tt.timeout); got != tt.want {
			t.Errorf("%v, %d places, timeout %v: %d, want %d", tt.window, tt.places, tt.timeout, got, tt.want)
		}
	}
}
