package adaptive

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/pools/breaker"
)

func TestLimit(t *testing.T) {
	t.Parallel()
	newLimit := func(cfg LimitConfig, highest int) *Limit {
		cfg.Max = highest
		l, err := NewLimit(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := newLimit(LimitConfig{Min: new(2)}, 10)
	if got := l.Limit(); got != 10 {
		t.Errorf("starts at %d", got)
	}
	l.Done(t0, at(time.Second), breaker.OutcomeFailure, 10)
	for range 9 { // the rest of the round began before the limit was lowered
		l.Done(t0, at(time.Second), breaker.OutcomeFailure, 9)
	}
	if got := l.Limit(); got != 9 {
		t.Errorf("%d after one bad round, want 9", got)
	}
	now := at(2 * time.Second)
	for i := range 9 {
		if got := l.Limit(); got != 9 {
			t.Fatalf("%d after %d successes, want 9 of them to raise it", got, i)
		}
		l.Done(now, now, breaker.OutcomeSuccess, 4)     // less than half of it is used
		l.Done(t0, now, breaker.OutcomeSuccess, 9)      // of an earlier round
		l.Done(now, now, breaker.OutcomeIgnored, 9)     // says nothing
		l.Done(now, now, breaker.OutcomeSuccess, 5+i%4) // counts
	}
	if got := l.Limit(); got != 10 {
		t.Errorf("%d after nine successes, want 10", got)
	}

	l = newLimit(LimitConfig{Min: new(3), Decrease: 0.5, SlowAfter: new(time.Second)}, 10)
	for i, want := range []int{5, 3, 3} {
		start := at(time.Duration(i) * time.Minute)
		if got := l.Done(start, start.Add(1001*time.Millisecond), breaker.OutcomeSuccess, 10); got != want {
			t.Errorf("%d after %d slow rounds, want %d", got, i+1, want)
		}
	}
	if got := l.Done(at(time.Hour), at(time.Hour+time.Second), breaker.OutcomeSuccess, 10); got != 3 {
		t.Errorf("%d: a call that took exactly as long as allowed", got)
	}
	for _, bad := range []LimitConfig{
		{Max: 10},
		{Min: new(1)},
		{Min: new(1), Max: -1},
		{Min: new(-1), Max: 10},
		{Min: new(1), Max: 10, Increase: -1},
		{Min: new(1), Max: 10, Decrease: 1},
		{Min: new(1), Max: 10, Decrease: math.NaN()},
	} {
		if _, err := NewLimit(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestLimitStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		highest := rapid.IntRange(1, 2000).Draw(t, "highest")
		cfg := LimitConfig{
			Min: new(rapid.IntRange(1, 2500).Draw(t, "min")), Max: highest, Increase: rapid.IntRange(1, 1000).Draw(t, "increase"),
			Decrease: rapid.Float64Range(0.1, 0.99).Draw(t, "decrease"),
		}
		l, err := NewLimit(cfg)
		if err != nil {
			t.Fatal(err)
		}
		now, before := t0, highest
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			start := now.Add(time.Duration(rapid.IntRange(-3, 0).Draw(t, "ago")) * time.Second)
			o := rapid.SampledFrom([]breaker.Outcome{breaker.OutcomeSuccess, breaker.OutcomeSuccess, breaker.OutcomeSuccess, breaker.OutcomeFailure, breaker.OutcomeSlow, breaker.OutcomeIgnored}).Draw(t, "outcome")
			got := l.Done(start, now, o, rapid.IntRange(0, 2*highest).Draw(t, "in use"))
			switch {
			case got < min(*cfg.Min, highest) || got > highest:
				t.Fatalf("limit %d", got)
			case got > before && o != breaker.OutcomeSuccess, got < before && (o == breaker.OutcomeSuccess || o == breaker.OutcomeIgnored):
				t.Fatalf("%d -> %d after %v", before, got, o)
			case got > before+cfg.Increase:
				t.Fatalf("%d -> %d", before, got)
			}
			before = got
			now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "wait")) * time.Second)
		}
	})
}
