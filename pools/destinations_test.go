package pools

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/limiter"
)

// send makes one call to a destination that must be admitted.
func send(t testing.TB, r *Destinations, name string, now time.Time, outcomes ...breaker.Outcome) {
	t.Helper()
	for _, o := range outcomes {
		p, v := r.Admit(now, Request{Destination: name})
		if !v.OK() {
			t.Fatalf("%s at %v: %+v", name, now.Sub(t0), v)
		}
		p.Done(now, o)
	}
}

func wantVerdict(t testing.TB, r *Destinations, name string, now time.Time, retry bool, want Verdict) {
	t.Helper()
	if got := r.Peek(now, Request{Destination: name, Retry: retry}); got != want {
		t.Errorf("%s at %v: Peek = %+v, want %+v", name, now.Sub(t0), got, want)
	}
	p, got := r.Admit(now, Request{Destination: name, Retry: retry})
	if got != want {
		t.Errorf("%s at %v: Admit = %+v, want %+v", name, now.Sub(t0), got, want)
	}
	p.Cancel(now)
}

// TestClientErrorsDoNotMoveTheBreaker : client errors and cancellations move nothing.
func TestClientErrorsDoNotMoveTheBreaker(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Breaker: breaker.Config{MinimumCalls: 5}}})
	send(t, r, "a", t0, times(20, breaker.OutcomeIgnored)...) // 400 x 20
	send(t, r, "a", t0, breaker.OutcomeSuccess)
	for i := range 5 { // 500, 404, 500, 404 ...
		if _, open := r.OpenSince("c", t0); open {
			t.Fatalf("open after %d failures", i)
		}
		send(t, r, "c", t0, breaker.OutcomeFailure)
		if i < 4 {
			send(t, r, "c", t0, breaker.OutcomeIgnored)
		}
	}
	wantVerdict(t, r, "c", t0, false, Verdict{ReasonBreakerOpen, 30 * time.Second})
	wantVerdict(t, r, "a", t0, false, Verdict{})
}

// TestManyURLsAreOneDestination : one breaker for all URLs of a host, bounded memory, open ones remembered.
func TestManyURLsAreOneDestination(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{})
	for i := range 50_000 {
		p, v := r.Admit(t0, Request{Destination: fmt.Sprintf("https://hooks.test/cb?id=%d", i)})
		if !v.OK() {
			t.Fatal(v)
		}
		p.Done(t0, breaker.OutcomeSuccess)
	}
	for _, alias := range []string{"HOOKS.test", "hooks.test.", "hooks.test:443", "u@hooks.test"} {
		send(t, r, alias, t0, breaker.OutcomeSuccess)
	}
	list := r.Snapshot(t0)
	if len(list) != 1 || list[0].Destination != "hooks.test" || list[0].Calls != 50_004 || r.Len() != 1 {
		t.Errorf("%+v", list)
	}
}

// TestRefusalsBurnNothing : what is turned away burns nothing, however often it asks.
func TestRefusalsBurnNothing(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{
		Rate:    limiter.Config{Rate: new(1000.0), Burst: 3},
		Default: DestinationConfig{Rate: limiter.Config{Rate: new(1.0 / 60), Burst: 2}, Budget: budget.Config{Form: budget.FormAWS, Tokens: 14}},
	})
	r.Force("h", t0, breaker.OverrideOpen)
	for i := range 20 { // re-checked every second
		wantVerdict(t, r, "h", at(time.Duration(i)*time.Second), true, Verdict{ReasonForcedOpen, 30 * time.Second})
	}
	now := at(20 * time.Second)
	r.Force("h", now, breaker.OverrideNone)
	first, v := r.Admit(now, Request{Destination: "h", Retry: true})
	if !v.OK() {
		t.Fatalf("the budget, the rate or the total was burnt: %+v", v)
	}
	second, v := r.Admit(now, Request{Destination: "h"})
	if !v.OK() {
		t.Fatalf("the second rate token was burnt: %+v", v)
	}
	first.Done(now, breaker.OutcomeSuccess)
	second.Done(now, breaker.OutcomeSuccess)
	for range 100 {
		wantVerdict(t, r, "h", now, false, Verdict{ReasonRateLimited, time.Minute})
	}
	send(t, r, "h", now.Add(time.Minute), breaker.OutcomeSuccess)
}

// TestTenantLimitTakesNothingFromOthers : a job stopped by its own destination's limit takes no token from the others.
func TestTenantLimitTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{
		Rate:   limiter.Config{Rate: new(20.0), Burst: 20},
		ByName: map[string]DestinationConfig{"a": {Rate: limiter.Config{Rate: new(1.0), Burst: 1}}},
	})
	admitted := 0
	for range 200 {
		if p, v := r.Admit(t0, Request{Destination: "a"}); v.OK() {
			admitted++
			p.Done(t0, breaker.OutcomeSuccess)
		}
	}
	if admitted != 1 {
		t.Errorf("%d of 200 admitted, want 1", admitted)
	}
	send(t, r, "b", t0, times(19, breaker.OutcomeSuccess)...)
	wantVerdict(t, r, "b", t0, false, Verdict{ReasonRateLimited, 50 * time.Millisecond})
	wantVerdict(t, r, "never seen", t0, false, Verdict{ReasonRateLimited, 50 * time.Millisecond})
}

func TestAdmitTakesConcurrencyAndDoneGivesItBack(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Concurrency: new(2), Rate: limiter.Config{Rate: new(1.0), Burst: 3}}})
	p1, _ := r.Admit(t0, Request{Destination: "a"})
	p2, _ := r.Admit(t0, Request{Destination: "a"})
	for range 5 {
		wantVerdict(t, r, "a", t0, false, Verdict{ReasonConcurrencyFull, time.Second})
	}
	p1.Done(t0, breaker.OutcomeIgnored)
	p1.Done(t0, breaker.OutcomeIgnored) // gives nothing back twice
	p3, v := r.Admit(t0, Request{Destination: "a"})
	if !v.OK() {
		t.Fatalf("refusals burnt the third token: %+v", v)
	}
	wantVerdict(t, r, "a", t0, false, Verdict{ReasonConcurrencyFull, time.Second})
	p2.Cancel(t0) // was not called after all: its token is back
	p2.Cancel(t0)
	send(t, r, "a", t0, breaker.OutcomeSuccess)
	wantVerdict(t, r, "a", t0, false, Verdict{ReasonRateLimited, time.Second})
	p3.Done(t0, breaker.OutcomeSuccess)
}

func TestConcurrencyHintFollowsTheLatency(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Concurrency: new(2)}})
	p, _ := r.Admit(t0, Request{Destination: "a"})
	p.Done(t0.Add(200*time.Millisecond), breaker.OutcomeSuccess) // two at once: 10 per second
	now := t0.Add(time.Second)
	p, _ = r.Admit(now, Request{Destination: "a"})
	q, _ := r.Admit(now, Request{Destination: "a"})
	wantVerdict(t, r, "a", now, false, Verdict{ReasonConcurrencyFull, 100 * time.Millisecond})
	p.Done(now, breaker.OutcomeIgnored)
	q.Done(now, breaker.OutcomeIgnored)
}

func TestRetriesNeedBudget(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Budget: budget.Config{Floor: new(0.1)}}}) // one in 10 s
	p, v := r.Admit(t0, Request{Destination: "a", Retry: true})
	if !v.OK() {
		t.Fatal(v)
	}
	wantVerdict(t, r, "a", t0, true, Verdict{ReasonBudgetEmpty, time.Second})
	wantVerdict(t, r, "a", t0, false, Verdict{})
	p.Cancel(t0)
	p, v = r.Admit(t0, Request{Destination: "a", Retry: true})
	if !v.OK() {
		t.Fatalf("a cancelled retry burnt the budget: %+v", v)
	}
	if v := p.Retry(t0, budget.TryRetry); v.Reason != ReasonBudgetEmpty {
		t.Errorf("%+v", v)
	}
	p.Done(t0, breaker.OutcomeFailure)
	send(t, r, "a", t0, times(10, breaker.OutcomeSuccess)...)
	p, v = r.Admit(t0, Request{Destination: "a", Retry: true})
	if !v.OK() {
		t.Errorf("ten successes earned no retry: %+v", v)
	}
	p.Done(t0, breaker.OutcomeSuccess)
}

func TestPermitRetryIsRefusedOnceTheDestinationIsSick(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Breaker: breaker.Config{MinimumCalls: 1}}})
	p, _ := r.Admit(t0, Request{Destination: "a"})
	if v := p.Retry(t0, budget.TryRetry); !v.OK() {
		t.Errorf("%+v", v)
	}
	r.Throttle("a", t0, at(time.Minute))
	if v := p.Retry(t0, budget.TryRetry); v != (Verdict{ReasonThrottled, time.Minute}) {
		t.Errorf("%+v", v)
	}
	send(t, r, "b", t0)
	q, _ := r.Admit(t0, Request{Destination: "b"})
	send(t, r, "b", t0, breaker.OutcomeFailure)
	if v := q.Retry(t0, budget.TryRetry); v != (Verdict{ReasonBreakerOpen, 30 * time.Second}) {
		t.Errorf("%+v", v)
	}
	r.Force("b", t0, breaker.OverrideOpen)
	if v := q.Retry(t0, budget.TryRetry); v.Reason != ReasonForcedOpen {
		t.Errorf("%+v", v)
	}
}

func TestGateLeavesTheBreakerAlone(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{})
	p, _ := r.Admit(t0, Request{Destination: "a"})
	r.Throttle("a", t0, at(120*time.Second))
	r.Throttle("a", t0, at(60*time.Second)) // a shorter one does not open it early
	r.Throttle("a", t0, at(-60*time.Second))
	wantVerdict(t, r, "a", at(60*time.Second), false, Verdict{ReasonThrottled, 60 * time.Second})
	if got := r.NextTry("a", t0); !got.Equal(at(120 * time.Second)) {
		t.Errorf("NextTry = %v", got)
	}
	if _, open := r.OpenSince("a", t0); open {
		t.Error("a gate counts as open")
	}
	list := r.Unhealthy(t0)
	if len(list) != 1 || list[0].State != breaker.StateClosed || !list[0].ThrottledUntil.Equal(at(120*time.Second)) {
		t.Errorf("%+v", list)
	}
	p.Done(at(time.Second), breaker.OutcomeSuccess) // still counts
	wantVerdict(t, r, "a", at(120*time.Second), false, Verdict{})
	if s, _ := r.Lookup("a", at(20*time.Second)); s.Calls != 1 {
		t.Errorf("%+v", s)
	}
}

func TestTheLongerOfGateAndBreakerCounts(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Breaker: breaker.Config{MinimumCalls: 1}}})
	send(t, r, "a", t0, breaker.OutcomeFailure)
	r.Throttle("a", t0, at(10*time.Second))
	wantVerdict(t, r, "a", t0, false, Verdict{ReasonBreakerOpen, 30 * time.Second})
	r.Throttle("a", t0, at(40*time.Second))
	wantVerdict(t, r, "a", t0, false, Verdict{ReasonThrottled, 40 * time.Second})
	wantVerdict(t, r, "a", at(35*time.Second), false, Verdict{ReasonThrottled, 5 * time.Second})
}

func TestOpenSinceSpansRoundsOfProbes(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{})
	send(t, r, "a", t0, times(10, breaker.OutcomeFailure)...)
	send(t, r, "a", at(30*time.Second), breaker.OutcomeFailure, breaker.OutcomeFailure) // a failed round
	if since, open := r.OpenSince("a", at(time.Hour)); !open || !since.Equal(t0) {
		t.Errorf("%v, %v", since, open)
	}
	send(t, r, "a", at(time.Hour), times(4, breaker.OutcomeSuccess)...)
	if _, open := r.OpenSince("a", at(time.Hour)); open {
		t.Error("closed, yet open")
	}
	r.Force("a", at(2*time.Hour), breaker.OverrideOpen)
	if since, open := r.OpenSince("a", at(3*time.Hour)); !open || !since.Equal(at(2*time.Hour)) {
		t.Errorf("forced: %v, %v", since, open)
	}
	r.Force("a", at(2*time.Hour), breaker.OverrideClosed)
	if _, open := r.OpenSince("a", at(3*time.Hour)); open {
		t.Error("forced closed, yet open")
	}
	if _, open := r.OpenSince("unknown", t0); open {
		t.Error("an unknown destination is open")
	}
}

func TestTransitionsNameTheDestination(t *testing.T) {
	t.Parallel()
	var trail []breaker.Transition
	r := registry(t, DestinationsConfig{OnTransition: func(tr breaker.Transition) { trail = append(trail, tr) }})
	send(t, r, "https://A.test/x", t0, times(10, breaker.OutcomeFailure)...)
	send(t, r, "a.test", at(30*time.Second), times(4, breaker.OutcomeSuccess)...)
	r.Reset("a.test", at(time.Minute))
	want := []breaker.Transition{
		{Destination: "a.test", From: breaker.StateClosed, To: breaker.StateOpen, Reason: breaker.TransitionReasonFailuresInARow, At: t0},
		{Destination: "a.test", From: breaker.StateOpen, To: breaker.StateHalfOpen, Reason: breaker.TransitionReasonOpenElapsed, At: at(30 * time.Second)},
		{Destination: "a.test", From: breaker.StateHalfOpen, To: breaker.StateClosed, Reason: breaker.TransitionReasonProbesSucceeded, At: at(30 * time.Second)},
		{Destination: "a.test", From: breaker.StateClosed, To: breaker.StateClosed, Reason: breaker.TransitionReasonReset, At: at(time.Minute)},
	}
	if diff := cmp.Diff(want, trail); diff != "" {
		t.Error(diff)
	}
}

func TestNoDestinationIsNeverLimited(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Rate: limiter.Config{Rate: new(1.0)}})
	r.Force("", t0, breaker.OverrideOpen)
	r.Throttle("", t0, at(time.Hour))
	r.Reset("", t0)
	for range 100 {
		wantVerdict(t, r, "", t0, true, Verdict{})
	}
	if _, open := r.OpenSince("", t0); open || r.Len() != 0 {
		t.Errorf("open %v, %d entries", open, r.Len())
	}
}

func TestDestinationsConfigIsChecked(t *testing.T) {
	t.Parallel()
	for path, cfg := range map[string]DestinationsConfig{
		"max":                               {Max: -1},
		"idle after":                        {IdleAfter: -1},
		"total rate limit":                  {Rate: limiter.Config{Rate: new(1e10)}},
		"default: concurrency":              {Default: DestinationConfig{Concurrency: new(10_000_000)}},
		"default: breaker: failure percent": {Default: DestinationConfig{Breaker: breaker.Config{FailurePercent: new(101)}}},
		"default: rate limit: burst":        {Default: DestinationConfig{Rate: limiter.Config{Rate: new(1.0), Burst: -1}}},
		"default: budget: form":             {Default: DestinationConfig{Budget: budget.Config{Form: "x"}}},
		"default: drain rate":               {Default: DestinationConfig{DrainRate: new(1e7)}},
		"default: defer floor":              {Default: DestinationConfig{DeferFloor: -1}},
		"default: defer cap":                {Default: DestinationConfig{DeferCap: 150 * time.Millisecond}},
		`by name "B.test": breaker: window`: {ByName: map[string]DestinationConfig{"B.test": {Breaker: breaker.Config{Window: 1}}}},
		"given twice":                       {ByName: map[string]DestinationConfig{"b.test": {}, "B.test": {}}},
		"name is empty":                     {ByName: map[string]DestinationConfig{" ": {}}},
	} {
		if _, err := NewDestinations(cfg); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}
