package pools

import (
	"slices"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/limiter"
)

func sharing(t testing.TB) *Destinations {
	t.Helper()
	return registry(t, DestinationsConfig{
		Default: DestinationConfig{Rate: limiter.Config{Rate: new(10.0), Burst: 5}, Breaker: breaker.Config{MinimumCalls: 2}},
		ByName:  map[string]DestinationConfig{"api": {Shared: new(true)}, "free": {Shared: new(true), Rate: limiter.Config{Rate: new(0.0)}}},
	})
}

func TestSharedDestinationsAreOpenWhileAnotherIs(t *testing.T) {
	t.Parallel()
	r := sharing(t)
	told := map[string]Peer{"https://API/": {OpenUntil: at(time.Minute)}, "own": {OpenUntil: at(time.Minute)}}
	r.Share(t0, told)
	wantVerdict(t, r, "api", t0, false, Verdict{ReasonSharedOpen, time.Minute})
	wantVerdict(t, r, "own", t0, false, Verdict{}) // is nobody's but its own
	if s, _ := r.Lookup("api", t0); s.State != breaker.StateClosed || !s.NextTry.Equal(at(time.Minute)) {
		t.Errorf("%+v", s)
	}
	if list := r.Unhealthy(t0); len(list) != 1 || list[0].Destination != "api" {
		t.Errorf("%+v", list)
	}
	r.Force("api", t0, breaker.OverrideClosed)
	wantVerdict(t, r, "api", t0, false, Verdict{})
	r.Force("api", t0, breaker.OverrideNone)
	wantVerdict(t, r, "api", t0, false, Verdict{ReasonSharedOpen, time.Minute})
	r.Share(t0, nil)
	wantVerdict(t, r, "api", t0, false, Verdict{})
	r.Share(t0, told)
	wantVerdict(t, r, "api", at(time.Minute), false, Verdict{})
}

func TestTheLongerOfOwnAndSharedBreakerCounts(t *testing.T) {
	t.Parallel()
	r := sharing(t)
	p, _ := r.Admit(t0, Request{Destination: "api"})
	r.Share(t0, map[string]Peer{"api": {OpenUntil: at(10 * time.Second)}})
	if v := p.Retry(t0, budget.TryRetry); v != (Verdict{ReasonSharedOpen, 10 * time.Second}) {
		t.Errorf("a retry of a call under way: %+v", v)
	}
	p.Done(t0, breaker.OutcomeFailure)
	r.Share(t0, nil)
	send(t, r, "api", t0, breaker.OutcomeFailure)
	for until, want := range map[time.Duration]Verdict{
		10 * time.Second: {ReasonBreakerOpen, 30 * time.Second},
		time.Minute:      {ReasonSharedOpen, time.Minute},
	} {
		r.Share(t0, map[string]Peer{"api": {OpenUntil: at(until)}})
		wantVerdict(t, r, "api", t0, false, want)
	}
}

func TestSharedRateIsDivided(t *testing.T) {
	t.Parallel()
	count := func(r *Destinations, name string, from time.Duration) (n int) {
		for i := range 1000 { // ten seconds
			now := at(from + time.Duration(i)*10*time.Millisecond)
			if p, v := r.Admit(now, Request{Destination: name}); v.OK() {
				n++
				p.Done(now, breaker.OutcomeSuccess)
			}
		}
		return n
	}
	r := sharing(t)
	r.Share(t0, map[string]Peer{"api": {Users: 4}, "own": {Users: 4}})
	if n := count(r, "api", 0); n < 25 || n > 27 {
		t.Errorf("%d calls in 10 s, want a quarter of 100 and of a burst of 5", n)
	}
	if n := count(r, "own", 0); n < 100 {
		t.Errorf("%d calls in 10 s to a destination of one worker alone", n)
	}
	wait := at(time.Hour)
	if v := r.Peek(wait, Request{Destination: "api"}); !v.OK() {
		t.Error(v)
	}
	r.Share(wait, map[string]Peer{"api": {Users: 0}})
	if n := count(r, "api", 2*time.Hour); n < 100 {
		t.Errorf("%d calls in 10 s by the only user", n)
	}
	if got := r.SharedInUse(at(2*time.Hour+11*time.Second), 10*time.Second); !slices.Equal(got, []string{"api"}) {
		t.Errorf("in use: %v", got)
	}
	if got := r.SharedInUse(at(3*time.Hour), 10*time.Second); len(got) != 0 {
		t.Errorf("in use: %v", got)
	}
}

func TestWhatIsSharedCanChange(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{})
	if r.Shares() {
		t.Error("something is shared")
	}
	r.Share(t0, map[string]Peer{"a": {OpenUntil: at(time.Minute), Users: 2}})
	set(t, r, t0, "a", &DestinationConfig{Shared: new(true)})
	if !r.Shares() {
		t.Error("nothing is shared")
	}
	wantVerdict(t, r, "a", t0, false, Verdict{ReasonSharedOpen, time.Minute}) // it was heard before it was asked for
	r.Force("a", t0, breaker.OverrideOpen)                                    // makes an entry
	r.Force("a", t0, breaker.OverrideNone)
	wantVerdict(t, r, "a", t0, false, Verdict{ReasonSharedOpen, time.Minute})
	set(t, r, t0, "a", nil)
	wantVerdict(t, r, "a", t0, false, Verdict{})
}
