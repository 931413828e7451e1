package pools

import (
	"math"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/pools/breaker"
)

// rounds sends for n seconds as many calls as are let through, to something that serves capacity of them and fails the rest, and returns the
// highest and lowest limit of the second half.
func rounds(t *testing.T, r *Destinations, from, n, capacity int) (low, high int) {
	t.Helper()
	low = math.MaxInt
	for i := range n {
		now := at(time.Duration(from+i) * time.Second)
		for j, p := range admits(r, "a", now) {
			o := breaker.OutcomeSuccess
			if j >= capacity {
				o = breaker.OutcomeFailure
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
		Concurrency: new(10), Adaptive: adaptive.LimitConfig{Min: new(1)}, Breaker: breaker.Config{FailurePercent: new(0)},
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
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Concurrency: new(10), Adaptive: adaptive.LimitConfig{Min: new(2), Decrease: 0.5}}})
	var out []Permit
	for range 4 {
		p, _ := r.Admit(t0, Request{Destination: "a"})
		out = append(out, p)
	}
	for i := range out { // all four are answered 429
		r.Throttle("a", at(time.Second+time.Duration(i)*time.Millisecond), at(10*time.Second))
		out[i].Done(at(time.Second), breaker.OutcomeIgnored)
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
	set(t, r, now, "a", &DestinationConfig{Concurrency: new(3), Adaptive: adaptive.LimitConfig{Min: new(0)}})
	if s, _ := r.Lookup("a", now); s.Limit != 0 || s.Concurrency != 3 {
		t.Errorf("%+v", s)
	}
	for _, p := range list {
		p.Done(now, breaker.OutcomeSuccess)
	}
	for fault, c := range map[string]DestinationConfig{
		"nothing to lower": {Adaptive: adaptive.LimitConfig{Min: new(1)}},
		"two maximums":     {Concurrency: new(5), Adaptive: adaptive.LimitConfig{Min: new(1), Max: 5}},
	} {
		if _, err := NewDestinations(DestinationsConfig{Default: c}); err == nil {
			t.Errorf("an adaptive limit with %s was taken", fault)
		}
	}
}
