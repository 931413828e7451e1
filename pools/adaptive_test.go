package pools

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAdaptiveLimit(t *testing.T) {
	t.Parallel()
	newLimit := func(cfg AdaptiveConfig, highest int) *AdaptiveLimit {
		l, err := NewAdaptiveLimit(cfg, highest)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := newLimit(AdaptiveConfig{Min: 2}, 10)
	if got := l.Limit(); got != 10 {
		t.Errorf("starts at %d", got)
	}
	l.Done(t0, at(time.Second), OutcomeFailure, 10)
	for range 9 { // the rest of the round began before the limit was lowered
		l.Done(t0, at(time.Second), OutcomeFailure, 9)
	}
	if got := l.Limit(); got != 9 {
		t.Errorf("%d after one bad round, want 9", got)
	}
	now := at(2 * time.Second)
	for i := range 9 {
		if got := l.Limit(); got != 9 {
			t.Fatalf("%d after %d successes, want 9 of them to raise it", got, i)
		}
		l.Done(now, now, OutcomeSuccess, 4)     // less than half of it is used
		l.Done(t0, now, OutcomeSuccess, 9)      // of an earlier round
		l.Done(now, now, OutcomeIgnored, 9)     // says nothing
		l.Done(now, now, OutcomeSuccess, 5+i%4) // counts
	}
	if got := l.Limit(); got != 10 {
		t.Errorf("%d after nine successes, want 10", got)
	}

	l = newLimit(AdaptiveConfig{Min: 3, Decrease: 0.5, SlowAfter: time.Second}, 10)
	for i, want := range []int{5, 3, 3} {
		start := at(time.Duration(i) * time.Minute)
		if got := l.Done(start, start.Add(1001*time.Millisecond), OutcomeSuccess, 10); got != want {
			t.Errorf("%d after %d slow rounds, want %d", got, i+1, want)
		}
	}
	if got := l.Done(at(time.Hour), at(time.Hour+time.Second), OutcomeSuccess, 10); got != 3 {
		t.Errorf("%d: a call that took exactly as long as allowed", got)
	}
	for _, bad := range []AdaptiveConfig{{}, {Min: 1, Increase: -1}, {Min: 1, Decrease: 1}, {Min: 1, Decrease: math.NaN()}} {
		if _, err := NewAdaptiveLimit(bad, 10); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestAdaptiveLimitStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		highest := rapid.IntRange(1, 2000).Draw(t, "highest")
		cfg := AdaptiveConfig{
			Min: rapid.IntRange(1, 2500).Draw(t, "min"), Increase: rapid.IntRange(1, 1000).Draw(t, "increase"),
			Decrease: rapid.Float64Range(0.1, 0.99).Draw(t, "decrease"),
		}
		l, err := NewAdaptiveLimit(cfg, highest)
		if err != nil {
			t.Fatal(err)
		}
		now, before := t0, highest
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			start := now.Add(time.Duration(rapid.IntRange(-3, 0).Draw(t, "ago")) * time.Second)
			o := rapid.SampledFrom([]Outcome{OutcomeSuccess, OutcomeSuccess, OutcomeSuccess, OutcomeFailure, OutcomeSlow, OutcomeIgnored}).Draw(t, "outcome")
			got := l.Done(start, now, o, rapid.IntRange(0, 2*highest).Draw(t, "in use"))
			switch {
			case got < min(cfg.Min, highest) || got > highest:
				t.Fatalf("limit %d", got)
			case got > before && o != OutcomeSuccess, got < before && (o == OutcomeSuccess || o == OutcomeIgnored):
				t.Fatalf("%d -> %d after %v", before, got, o)
			case got > before+cfg.Increase:
				t.Fatalf("%d -> %d", before, got)
			}
			before = got
			now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "wait")) * time.Second)
		}
	})
}

// rounds sends for n seconds as many calls as are let through, to something that serves capacity of them and fails the rest, and returns the
// highest and lowest limit of the second half.
func rounds(t *testing.T, r *Destinations, from, n, capacity int) (low, high int) {
	t.Helper()
	low = math.MaxInt
	for i := range n {
		now := at(time.Duration(from+i) * time.Second)
		for j, p := range admits(r, "a", now) {
			o := OutcomeSuccess
			if j >= capacity {
				o = OutcomeFailure
			}
			p.Done(now.Add(900*time.Millisecond), o)
		}
		s, _ := r.Lookup("a", now)
		limit := s.Concurrency
		if s.Limit > 0 {
			limit = s.Limit
		}
		if i >= n/2 {
			low, high = min(low, limit), max(high, limit)
		}
	}
	return low, high
}

func TestLimitFollowsTheCapacity(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{
		Concurrency: 10, Adaptive: AdaptiveConfig{Min: 1}, Breaker: BreakerConfig{FailurePercent: -1},
	}})
	if low, high := rounds(t, r, 0, 20, 10); low != 10 || high != 10 {
		t.Errorf("limit %d to %d where 10 are served", low, high)
	}
	if _, _, d := r.find("a"); d.opt != nil {
		t.Error("state is kept for a limit that never moved")
	}
	r.shardOf("a").mu.Unlock()
	if low, high := rounds(t, r, 100, 30, 2); low < 1 || high > 3 {
		t.Errorf("limit %d to %d within 15 rounds, where 2 are served", low, high)
	}
	if low, high := rounds(t, r, 200, 30, 10); low != 10 || high != 10 {
		t.Errorf("limit %d to %d within 15 rounds after 10 are served again", low, high)
	}
	if _, _, d := r.find("a"); d.opt != nil {
		t.Error("state is kept for a limit that has recovered")
	}
	r.shardOf("a").mu.Unlock()
}

func TestThrottlesLowerTheLimitOnce(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Concurrency: 10, Adaptive: AdaptiveConfig{Min: 2, Decrease: 0.5}}})
	var out []Permit
	for range 4 {
		p, _ := r.Admit(t0, Request{Destination: "a"})
		out = append(out, p)
	}
	for i := range out { // all four are answered 429
		r.Throttle("a", at(time.Second+time.Duration(i)*time.Millisecond), at(10*time.Second))
		out[i].Done(at(time.Second), OutcomeIgnored)
	}
	if s, _ := r.Lookup("a", at(time.Second)); s.Limit != 5 || s.Concurrency != 10 {
		t.Errorf("limit %d of %d, want 5 of 10", s.Limit, s.Concurrency)
	}
	now := at(11 * time.Second)
	list := admits(r, "a", now)
	if len(list) != 5 {
		t.Errorf("%d admitted, want 5", len(list))
	}
	wantVerdict(t, r, "a", now, false, Verdict{ReasonConcurrencyFull, time.Second})
	set(t, r, now, "a", &DestinationConfig{Concurrency: 3, Adaptive: AdaptiveConfig{Min: -1}})
	if s, _ := r.Lookup("a", now); s.Limit != 0 || s.Concurrency != 3 {
		t.Errorf("%+v", s)
	}
	for _, p := range list {
		p.Done(now, OutcomeSuccess)
	}
	if _, err := NewDestinations(DestinationsConfig{Default: DestinationConfig{Adaptive: AdaptiveConfig{Min: 1}}}); err == nil {
		t.Error("an adaptive limit with nothing to lower was taken")
	}
}
