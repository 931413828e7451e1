package pools

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/internal/stamp"
	"github.com/caisson-go/caisson/pools/limiter"
)

func TestRegistryIsBoundedAndNeverForgetsAnOpenOne(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{
		Max: 1000, IdleAfter: time.Minute, Default: DestinationConfig{Breaker: breaker.Config{MinimumCalls: 1}},
	})
	send(t, r, "open.test", t0, breaker.OutcomeFailure)
	r.Force("forced.test", t0, breaker.OverrideClosed)
	r.Throttle("throttled.test", t0, at(1000*time.Hour))
	busy, _ := r.Admit(t0, Request{Destination: "busy.test"})
	now := t0
	for i := range 20_000 {
		now = now.Add(time.Second)
		send(t, r, fmt.Sprintf("host-%d.test", i), now, breaker.OutcomeSuccess)
		if n := r.Len(); n > 1000 {
			t.Fatalf("%d entries", n)
		}
	}
	for _, name := range []string{"open.test", "forced.test", "throttled.test", "busy.test"} {
		if _, ok := r.Lookup(name, now); !ok {
			t.Errorf("%s is forgotten", name)
		}
	}
	if n := len(r.Snapshot(now.Add(time.Hour))); n != 4 {
		t.Errorf("%d entries left after an hour, want the 4 that may not be forgotten", n)
	}
	busy.Done(now, breaker.OutcomeSuccess)
	if _, open := r.OpenSince("open.test", now); !open {
		t.Error("open.test is not open")
	}
}

func TestRegistryForgetsIdleOnesWhileOthersAreUsed(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Max: 3000, IdleAfter: time.Minute})
	for i := range 3000 {
		send(t, r, fmt.Sprintf("host-%d.test", i), t0, breaker.OutcomeSuccess)
	}
	for i := range 100_000 { // no newcomers, only use
		send(t, r, fmt.Sprintf("host-%d.test", i%20), at(2*time.Minute), breaker.OutcomeIgnored)
	}
	if n := r.Len(); n > 300 {
		t.Errorf("%d entries, of which 20 are used", n)
	}
}

// TestForceOfANewcomerToAFullRegistry: it is not that of all others, before and after there is room.
func TestForceOfANewcomerToAFullRegistry(t *testing.T) {
	t.Parallel()
	for _, o := range []breaker.Override{breaker.OverrideOpen, breaker.OverrideClosed, breaker.OverrideNone} {
		r := registry(t, DestinationsConfig{Max: 2})
		for _, name := range []string{"a", "b"} {
			r.Force(name, t0, breaker.OverrideOpen) // never forgotten
		}
		r.Force("c", t0, o)
		if d, ok := r.Lookup(Overflow, t0); !ok || d.Override != breaker.OverrideNone {
			t.Errorf("%s of one name is that of all: %s", o, d.Override)
		}
		send(t, r, "d", t0, breaker.OutcomeSuccess)

		r.Force(Overflow, t0, breaker.OverrideOpen)
		r.Force("c", t0, o)
		if _, v := r.Admit(t0, Request{Destination: "d"}); v.Reason != ReasonForcedOpen {
			t.Errorf("the override of the overflow itself, after %s of one name: %s", o, v.Reason)
		}
	}
}

func TestNewcomersToAFullRegistryShareOneDestination(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Max: 2, Default: DestinationConfig{Breaker: breaker.Config{MinimumCalls: 1}, Concurrency: new(2)}})
	send(t, r, "a", t0, breaker.OutcomeFailure)
	send(t, r, "b", t0, breaker.OutcomeFailure)
	p1, v1 := r.Admit(t0, Request{Destination: "c"})
	p2, v2 := r.Admit(t0, Request{Destination: "d"})
	if !v1.OK() || !v2.OK() || r.Len() != 2 {
		t.Fatalf("%+v, %+v, %d entries", v1, v2, r.Len())
	}
	wantVerdict(t, r, "e", t0, false, Verdict{ReasonConcurrencyFull, time.Second})
	list := r.Snapshot(t0)
	if len(list) != 3 || list[0].Destination != Overflow || list[0].InUse != 2 {
		t.Errorf("%+v", list)
	}
	p1.Done(t0, breaker.OutcomeFailure) // opens it for all of them
	p2.Done(t0, breaker.OutcomeSuccess)
	wantVerdict(t, r, "e", t0, false, Verdict{ReasonBreakerOpen, 30 * time.Second})
	r.Reset(Overflow, t0)
	wantVerdict(t, r, "e", t0, false, Verdict{})
	now := at(time.Hour)
	send(t, r, "a", now, times(4, breaker.OutcomeSuccess)...) // a closes
	later := now.Add(time.Hour)                               // and is idle
	send(t, r, "f", later, breaker.OutcomeSuccess)
	if _, ok := r.Lookup("f", later); !ok {
		t.Error("f has no entry of its own though there was room to make")
	}
	if _, ok := r.Lookup("b", later); !ok {
		t.Error("b was forgotten while open")
	}
}

func TestPeekRemembersNothing(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{})
	for i := range 1000 {
		r.Peek(t0, Request{Destination: fmt.Sprint(i), Retry: true})
		r.OpenSince(fmt.Sprint(i), t0)
		r.Reset(fmt.Sprint(i), t0)
	}
	if r.Len() != 0 {
		t.Errorf("%d entries", r.Len())
	}
	r = registry(t, DestinationsConfig{Default: DestinationConfig{Budget: budget.Config{Floor: new(0.0)}}})
	wantVerdict(t, r, "newcomer", t0, true, Verdict{ReasonBudgetEmpty, time.Second})
}

func TestRateDebtAndLinesAreNotForgotten(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{
		IdleAfter: time.Minute, Default: DestinationConfig{Rate: limiter.Config{Rate: new(1.0 / 3600)}, DrainRate: new(0.002)},
	})
	send(t, r, "a", t0, breaker.OutcomeSuccess)
	r.Defer(t0, Request{Destination: "b"}, time.Second) // the next in line is due after 501 s
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{8 * time.Minute, 2}, {59 * time.Minute, 1}, {61 * time.Minute, 0}} {
		if got := len(r.Snapshot(at(tt.after))); got != tt.want {
			t.Errorf("after %v: %d destinations, want %d", tt.after, got, tt.want)
		}
	}
}

func TestDegradationThatIsOverIsForgotten(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Breaker: breaker.Config{Ramp: new(time.Minute), Probes: 1}}})
	send(t, r, "a", t0, times(10, breaker.OutcomeFailure)...)
	send(t, r, "a", at(30*time.Second), breaker.OutcomeSuccess)
	for _, after := range []time.Duration{89 * time.Second, 90 * time.Second} {
		want := after < 90*time.Second // the end of the ramp
		send(t, r, "a", at(after), breaker.OutcomeIgnored)
		_, _, d := r.find("a")
		r.shardOf("a").mu.Unlock()
		if got := !d.circuit.Closed(); got != want {
			t.Errorf("after %v: remembers that it was degraded: %v", after, got)
		}
	}
}

func TestConfigureKeepsPermitsStateAndCounts(t *testing.T) {
	t.Parallel()
	cfg := DestinationsConfig{Default: DestinationConfig{Concurrency: new(2), Breaker: breaker.Config{MinimumCalls: 4, Window: 30 * time.Second}}}
	r := registry(t, cfg)
	send(t, r, "open", t0, times(4, breaker.OutcomeFailure)...)
	send(t, r, "a", t0, breaker.OutcomeFailure, breaker.OutcomeFailure)
	p1, _ := r.Admit(t0, Request{Destination: "a"})
	p2, _ := r.Admit(t0, Request{Destination: "a"})

	cfg.Default.Concurrency = new(1)
	cfg.Default.Breaker.Window, cfg.Default.Breaker.OpenFor = time.Hour, 30*time.Second
	cfg.ByName = map[string]DestinationConfig{"https://A/": {Breaker: breaker.Config{MinimumCalls: 3}}}
	if err := r.Configure(at(time.Second), cfg); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, r, "open", at(time.Second), false, Verdict{ReasonBreakerOpen, 29 * time.Second})
	p1.Done(at(time.Second), breaker.OutcomeSuccess) // the third call of the override's minimum: two failures of three
	wantVerdict(t, r, "a", at(time.Second), false, Verdict{ReasonBreakerOpen, 30 * time.Second})
	if s, _ := r.Lookup("a", at(time.Second)); s.InUse != 1 || s.Concurrency != 1 {
		t.Errorf("%+v", s)
	}
	p2.Done(at(time.Second), breaker.OutcomeSuccess)
	if s, _ := r.Lookup("a", at(time.Second)); s.InUse != 0 {
		t.Errorf("a permit is lost: %+v", s)
	}

	cfg.Default.Breaker.Window = 1
	if err := r.Configure(at(time.Second), cfg); err == nil {
		t.Fatal("a bad config was accepted")
	}
	wantVerdict(t, r, "open", at(time.Second), false, Verdict{ReasonBreakerOpen, 29 * time.Second})
}

func TestOverridesFillInFromTheDefault(t *testing.T) {
	t.Parallel()
	base := DestinationConfig{
		Breaker: breaker.Webhook(), Concurrency: new(3), Rate: limiter.Config{Rate: new(5.0), Burst: 2}, DrainRate: new(7.0),
		Budget: budget.Config{Form: budget.FormAWS, Tokens: 99},
	}
	got := DestinationConfig{Breaker: breaker.Config{MinimumCalls: 9}, Concurrency: new(0)}.over(base).withDefaults()
	if b := got.Breaker; b.MinimumCalls != 9 || *b.FailurePercent != 80 || b.Window != 10*time.Minute || b.OpenFor != 5*time.Minute {
		t.Errorf("%+v", b)
	}
	if *got.Concurrency != 0 || got.Rate != base.Rate || *got.DrainRate != 7 || got.Budget.Tokens != 99 || got.Budget.Form != budget.FormAWS {
		t.Errorf("%+v", got)
	}
	if b := (budget.Config{Form: budget.FormGRPC}).Over(base.Budget).WithDefaults(); b.Tokens != 10 {
		t.Errorf("another form took the tokens of this one: %+v", b)
	}
}

// TestRegistryUnderManyCallers holds the limits while everything happens at once.
func TestRegistryUnderManyCallers(t *testing.T) {
	t.Parallel()
	const limit = 4
	var transitions atomic.Int64
	r := registry(t, DestinationsConfig{
		Max: 50, IdleAfter: time.Second,
		Default:      DestinationConfig{Concurrency: new(limit), Breaker: breaker.Config{MinimumCalls: 5, OpenFor: time.Second, Window: time.Second}},
		OnTransition: func(breaker.Transition) { transitions.Add(1) },
	})
	var running [100]atomic.Int32
	var clock atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 3000 {
				now := at(time.Duration(clock.Add(int64(time.Millisecond))))
				k := (g + i) % len(running)
				name := fmt.Sprintf("https://h%d.test/%d", k, i)
				r.Peek(now, Request{Destination: name})
				p, v := r.Admit(now, Request{Destination: name, Retry: i%3 == 0})
				if v.OK() {
					// In the overflow several names share the limit, so that it holds for each of them too.
					if n := running[k].Add(1); n > limit {
						t.Errorf("%d at once to %s", n, name)
					}
					running[k].Add(-1)
					p.Done(now, breaker.Outcome(i%4))
				} else if v.Wait <= 0 {
					t.Errorf("%+v", v)
				}
				switch i % 500 {
				case 0:
					_ = r.Configure(now, DestinationsConfig{Max: 50, Default: DestinationConfig{Concurrency: new(1 + i%limit)}})
				case 1:
					r.Snapshot(now)
				case 2:
					r.Force(name, now, breaker.Override(i%3))
				case 3:
					r.Throttle(name, now, now.Add(time.Second))
				case 4:
					r.Defer(now, Request{Destination: name}, v.Wait)
				}
			}
		})
	}
	wg.Wait()
	if r.Len() > 50 || transitions.Load() == 0 {
		t.Errorf("%d entries, %d transitions", r.Len(), transitions.Load())
	}
	for _, s := range r.Snapshot(at(time.Duration(clock.Load()))) {
		if s.InUse != 0 {
			t.Errorf("lost permits: %+v", s)
		}
	}
}

func TestEvictableOnlyWhenNothingIsForgotten(t *testing.T) {
	t.Parallel()
	idle := time.Minute
	evictable := func(r *Destinations, after time.Duration) bool {
		s, _, d := r.find("a")
		defer s.mu.Unlock()
		return d.evictable(stamp.Of(at(after)), idle, false)
	}
	r := registry(t, DestinationsConfig{Default: DestinationConfig{Breaker: breaker.Config{Window: 10 * time.Minute}}})
	send(t, r, "a", t0, breaker.OutcomeFailure, breaker.OutcomeSuccess)
	if evictable(r, 10*time.Minute) {
		t.Error("within the window")
	}
	if !evictable(r, 10*time.Minute+3*time.Second) { // the last use is known to a second or two
		t.Error("idle beyond the window, yet kept")
	}
	p, _ := r.Admit(t0, Request{Destination: "a"})
	if evictable(r, time.Hour) {
		t.Error("a permit is out")
	}
	p.Done(t0, breaker.OutcomeSuccess)
	r.Force("a", t0, breaker.OverrideClosed)
	if evictable(r, time.Hour) {
		t.Error("overridden")
	}
	r.Force("a", t0, breaker.OverrideNone)
	if !evictable(r, time.Hour) {
		t.Error("closed and idle, yet kept")
	}
	r = registry(t, DestinationsConfig{})
	send(t, r, "a", t0, breaker.OutcomeFailure)
	if evictable(r, 23*time.Hour) {
		t.Error("the last call failed")
	}
	if !evictable(r, 25*time.Hour) {
		t.Error("failed a day ago, yet kept")
	}
	r = registry(t, DestinationsConfig{})
	send(t, r, "a", t0, times(10, breaker.OutcomeFailure)...)
	if evictable(r, 1000*time.Hour) {
		t.Error("open")
	}
}
