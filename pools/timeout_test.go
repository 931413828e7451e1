package pools

import (
	"math"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/pools/breaker"
)

func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want*5/4+time.Millisecond {
		t.Errorf("%s: timeout %v, want about %v", what, got, want)
	}
}

func TestDestinationsHaveTimeouts(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{
		Default: DestinationConfig{Timeout: adaptive.TimeoutConfig{Floor: new(time.Millisecond)}},
		ByName:  map[string]DestinationConfig{"plain": {Timeout: adaptive.TimeoutConfig{Floor: new(time.Duration(0))}}},
	})
	timeout := func(name string) time.Duration {
		p, v := r.Admit(t0, Request{Destination: name})
		if !v.OK() {
			t.Fatal(v)
		}
		defer p.Cancel(t0)
		return p.Timeout()
	}
	for range 30 {
		call(t, r, "a", t0, 50*time.Millisecond, breaker.OutcomeSuccess)
		call(t, r, "plain", t0, 50*time.Millisecond, breaker.OutcomeSuccess)
	}
	near(t, "a", timeout("a"), 100*time.Millisecond)
	if s, _ := r.Lookup("a", t0); s.Timeout != timeout("a") {
		t.Errorf("%+v", s)
	}
	if got := timeout("plain"); got != 0 {
		t.Errorf("plain: %v", got)
	}
	if got := timeout("b"); got != 0 {
		t.Errorf("nothing is known of b, and there is no ceiling: %v", got)
	}
	set(t, r, t0, "a", &DestinationConfig{Timeout: adaptive.TimeoutConfig{Floor: new(time.Duration(0))}})
	if _, _, d := r.find("a"); d.opt != nil {
		t.Error("a histogram is kept that nobody asks")
	}
	r.shardOf("a").mu.Unlock()
	var none Permit
	if none.Timeout() != 0 {
		t.Error("no permit, no timeout")
	}
	for _, bad := range []adaptive.TimeoutConfig{
		{Floor: new(time.Duration(1))}, {Floor: new(time.Second), Ceiling: time.Millisecond}, {Ceiling: -1}, {Margin: 0.5}, {Margin: math.NaN()}, {Samples: 401}, {Samples: -1},
	} {
		if _, err := NewDestinations(DestinationsConfig{Default: DestinationConfig{Timeout: bad}}); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
