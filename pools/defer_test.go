package pools

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/limiter"
)

func zero() float64 { return 0 } // no jitter where jitter only adds

func TestDeferSpacesJobsByTheDrainRate(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Random: zero, Default: DestinationConfig{DrainRate: new(2.0)}})
	for i := range 10 {
		want := 10*time.Second + time.Duration(i)*500*time.Millisecond
		if got := r.Defer(t0, Request{Destination: "a"}, 10*time.Second); got != want {
			t.Fatalf("job %d: %v, want %v", i, got, want)
		}
	}
	if got := r.Defer(at(12*time.Second), Request{Destination: "a"}, 0); got != 3*time.Second { // seven are still to come
		t.Errorf("got %v", got)
	}
	if got := r.Defer(at(time.Hour), Request{Destination: "a"}, 0); got != 100*time.Millisecond {
		t.Errorf("the line is long over, got %v, want the floor", got)
	}
	r.Defer(t0, Request{Destination: "a"}, time.Hour)
	r.Reset("a", t0)
	if got := r.Defer(t0, Request{Destination: "a"}, 5*time.Second); got != 5*time.Second {
		t.Errorf("after a reset: %v", got)
	}
}

func TestDeferDrainRate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg     DestinationConfig
		calls   int
		took    time.Duration
		outcome breaker.Outcome
		want    float64
	}{
		"unknown":                 {DestinationConfig{}, 0, 0, breaker.OutcomeSuccess, defaultDrainRate},
		"measured":                {DestinationConfig{}, 1500, time.Second, breaker.OutcomeSuccess, 50},
		"latency":                 {DestinationConfig{Concurrency: new(3)}, 1, 100 * time.Millisecond, breaker.OutcomeSuccess, 30},
		"latency of slow answers": {DestinationConfig{Concurrency: new(3)}, 1, 30 * time.Second, breaker.OutcomeSlow, 0.1},
		"failures have none":      {DestinationConfig{Concurrency: new(3)}, 1, time.Millisecond, breaker.OutcomeFailure, 150},
		"unknown, with permits":   {DestinationConfig{Concurrency: new(3)}, 0, 0, breaker.OutcomeSuccess, 150},
		"rate limit":              {DestinationConfig{Rate: limiter.Config{Rate: new(4.0), Burst: 2000}}, 1500, time.Second, breaker.OutcomeSuccess, 4 * rateShare},
		"configured":              {DestinationConfig{DrainRate: new(3.0)}, 1500, time.Second, breaker.OutcomeSuccess, 3},
	} {
		r := registry(t, DestinationsConfig{Random: zero, Default: tt.cfg})
		now := t0.Add(tt.took)
		for range tt.calls {
			p, v := r.Admit(t0, Request{Destination: "a"})
			if !v.OK() {
				t.Fatalf("%s: %+v", name, v)
			}
			p.Done(now, tt.outcome)
		}
		r.Defer(now, Request{Destination: "a"}, time.Minute)
		got, want := r.Defer(now, Request{Destination: "a"}, time.Minute)-time.Minute, time.Duration(math.Ceil(1e9/tt.want))
		if diff := got - want; diff < -time.Microsecond || diff > time.Microsecond {
			t.Errorf("%s: apart by %v, want %v", name, got, want)
		}
	}
}

// What a destination did while it was well says nothing of when its breaker is open: its jobs come back at the default rate.
func TestDeferWhileOpenForgetsTheLatency(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Random: zero, Default: DestinationConfig{Concurrency: new(3), Breaker: breaker.Config{MinimumCalls: 5}}})
	send(t, r, "a", t0, breaker.OutcomeSuccess)
	send(t, r, "a", t0, times(4, breaker.OutcomeFailure)...)
	first := r.Defer(t0, Request{Destination: "a"}, time.Minute)
	if got := r.Defer(t0, Request{Destination: "a"}, time.Minute) - first; got != time.Second/defaultDrainRate {
		t.Errorf("apart by %v", got)
	}
}

// As long as no call is answered, deferred jobs come back less and less often: calls take at least as long as jobs have waited.
func TestDeferSlowsDownWhileNothingIsAnswered(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Random: zero, Default: DestinationConfig{Concurrency: new(2)}})
	for range 2 {
		if _, v := r.Admit(t0, Request{Destination: "a"}); !v.OK() {
			t.Fatalf("%+v", v)
		}
	}
	r.Defer(t0, Request{Destination: "a"}, 0)
	for _, age := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		first := r.Defer(t0.Add(age), Request{Destination: "a"}, 3*time.Minute)
		if got, want := r.Defer(t0.Add(age), Request{Destination: "a"}, 3*time.Minute)-first, age/2; got < want-time.Microsecond || got > want+time.Microsecond {
			t.Errorf("after %s apart by %s, want %s", age, got, want)
		}
	}
}

// TestDeferIsNeverAHotLoopNorEndless : for 100,000 jobs and any hint.
func TestDeferIsNeverAHotLoopNorEndless(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		u := 0.0
		r, err := NewDestinations(DestinationsConfig{
			Random:  func() float64 { return u },
			Default: DestinationConfig{DeferFloor: 2 * time.Second, DeferCap: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		now := t0
		for range rapid.SampledFrom([]int{1, 10, 2000}).Draw(t, "jobs") {
			u = rapid.Float64Range(0, 0.999).Draw(t, "u")
			wait := time.Duration(rapid.Int64().Draw(t, "wait"))
			if got := r.Defer(now, Request{Destination: "a"}, wait); got < 2*time.Second || got > time.Minute {
				t.Fatalf("Defer(%v) = %v", wait, got)
			}
			if got := r.Defer(now, Request{Destination: ""}, wait); got < time.Second || got > 15*time.Hour {
				t.Fatalf("without a destination: Defer(%v) = %v", wait, got)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "ms")) * time.Millisecond)
		}
	})
}

// A snapshot tells about how many jobs stand in a destination's line, until they have come back.
func TestSnapshotCountsTheLine(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Random: zero, Default: DestinationConfig{DrainRate: new(2.0), Breaker: breaker.Config{MinimumCalls: 5}}})
	send(t, r, "a", t0, times(5, breaker.OutcomeFailure)...)
	waiting := func(now time.Time) int {
		t.Helper()
		d, ok := r.Lookup("a", now)
		if !ok {
			t.Fatal("forgotten")
		}
		return d.Waiting
	}
	if n := waiting(t0); n != 0 {
		t.Errorf("%d before anything was deferred", n)
	}
	open := r.Peek(t0, Request{Destination: "a"}).Wait
	for range 10 {
		r.Defer(t0, Request{Destination: "a"}, open)
	}
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 10}, {open / 2, 10}, {open + 2*time.Second, 6}, {open + time.Minute, 0}} {
		if n := waiting(t0.Add(tt.after)); n != tt.want {
			t.Errorf("%v later %d wait, want %d", tt.after, n, tt.want)
		}
	}
}
