package pools

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/limiter"
)

func set(t testing.TB, r *Destinations, now time.Time, name string, cfg *DestinationConfig) {
	t.Helper()
	if err := r.Set(now, name, cfg); err != nil {
		t.Fatal(err)
	}
}

func settingsOf(r *Destinations, name string) *settings {
	s, d := r.peeked(name)
	defer s.mu.Unlock()
	return d.s
}

func concurrencyOf(r *Destinations, name string) int { return int(settingsOf(r, name).concurrency) }

func TestSetKeepsPermitsStateAndCounts(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{
		Default: DestinationConfig{Concurrency: new(3), Breaker: breaker.Config{MinimumCalls: 3}},
		ByName:  map[string]DestinationConfig{"a.test": {Concurrency: new(2)}},
	})
	p1, _ := r.Admit(t0, Request{Destination: "a.test"})
	p2, _ := r.Admit(t0, Request{Destination: "a.test"})
	send(t, r, "b.test", t0, breaker.OutcomeFailure, breaker.OutcomeFailure)
	wantVerdict(t, r, "a.test", t0, false, Verdict{ReasonConcurrencyFull, time.Second})

	set(t, r, t0, "https://A.test/hook", &DestinationConfig{Concurrency: new(5)})
	wantVerdict(t, r, "a.test", t0, false, Verdict{})
	if s, _ := r.Lookup("a.test", t0); s.InUse != 2 || s.Concurrency != 5 {
		t.Errorf("%+v", s)
	}
	if got := concurrencyOf(r, "c.test"); got != 3 {
		t.Errorf("another destination has %d", got)
	}
	if n := settingsOf(r, "a.test").breaker.MinimumCalls; n != 3 {
		t.Errorf("minimum of calls %d is not the default's", n)
	}
	set(t, r, t0, "b.test", &DestinationConfig{Breaker: breaker.Config{MinimumCalls: 2}})
	send(t, r, "b.test", t0, breaker.OutcomeFailure) // with the two from before
	wantVerdict(t, r, "b.test", t0, false, Verdict{ReasonBreakerOpen, 30 * time.Second})

	set(t, r, t0, "a.test", nil)
	if got := concurrencyOf(r, "a.test"); got != 2 {
		t.Errorf("back to %d, want the table's 2", got)
	}
	p1.Done(t0, breaker.OutcomeSuccess)
	p2.Done(t0, breaker.OutcomeSuccess)
	if s, _ := r.Lookup("a.test", t0); s.InUse != 0 {
		t.Errorf("%+v", s)
	}
	set(t, r, t0, "b.test", nil)
	set(t, r, t0, "never.test", nil)
	if len(r.own) != 0 {
		t.Errorf("%d configurations are kept for nobody", len(r.own))
	}
}

// Set is for a running registry: Configure comes behind it, destinations come and go.
func TestConfigureKeepsWhatWasSet(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{IdleAfter: time.Minute, Default: DestinationConfig{Concurrency: new(3)}})
	set(t, r, t0, "a.test", &DestinationConfig{Rate: limiter.Config{Rate: new(7.0)}})
	set(t, r, t0, "b.test", &DestinationConfig{Concurrency: new(9)})
	send(t, r, "a.test", t0, breaker.OutcomeSuccess)
	if err := r.Configure(t0, DestinationsConfig{IdleAfter: time.Minute, Default: DestinationConfig{Concurrency: new(4)}}); err != nil {
		t.Fatal(err)
	}
	if s := settingsOf(r, "a.test"); s.rateLimit != 7 || s.concurrency != 4 {
		t.Errorf("rate %v, concurrency %d: want 7 as set and 4 as the new default", s.rateLimit, s.concurrency)
	}
	if n := len(r.Snapshot(at(time.Hour))); n != 0 {
		t.Fatalf("%d destinations left", n)
	}
	if s := settingsOf(r, "a.test"); s.rateLimit != 7 {
		t.Errorf("what was set is forgotten with the idle destination: %v", s.rateLimit)
	}
	if got := concurrencyOf(r, "b.test"); got != 9 {
		t.Errorf("b has %d, want 9", got)
	}

	set(t, r, t0, "c.test", &DestinationConfig{DeferFloor: time.Minute})
	err := r.Configure(t0, DestinationsConfig{Default: DestinationConfig{DeferCap: time.Minute, Concurrency: new(5)}})
	if err == nil || !strings.Contains(err.Error(), "defer cap 1m0s") {
		t.Errorf("%v: want the cap that c's floor does not go with", err)
	}
	if got := concurrencyOf(r, "x.test"); got != 4 {
		t.Errorf("concurrency %d after a refused configuration, want 4", got)
	}
}

func TestSetRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{})
	if err := r.Set(t0, "  ", &DestinationConfig{}); err == nil {
		t.Error("an empty name was taken")
	}
	set(t, r, t0, "a", &DestinationConfig{Concurrency: new(2)})
	if err := r.Set(t0, "a", &DestinationConfig{DeferFloor: -1}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("%v", err)
	}
	if got := concurrencyOf(r, "a"); got != 2 || len(r.own) != 1 {
		t.Errorf("concurrency %d, %d configurations", got, len(r.own))
	}
}

func TestEqualConfigurationsShareSettings(t *testing.T) {
	t.Parallel()
	over := map[string]DestinationConfig{}
	for i := range 100 {
		over[fmt.Sprintf("o%d", i)] = DestinationConfig{Concurrency: new(3)}
	}
	r := registry(t, DestinationsConfig{ByName: over})
	for i := range 100 {
		set(t, r, t0, fmt.Sprintf("s%d", i), &DestinationConfig{Concurrency: new(4)})
		send(t, r, fmt.Sprintf("s%d", i), t0, breaker.OutcomeSuccess)
	}
	seen := map[*settings]int{}
	for i := range 100 {
		seen[settingsOf(r, fmt.Sprintf("s%d", i))]++
		seen[settingsOf(r, fmt.Sprintf("o%d", i))]++
	}
	if len(seen) != 2 || len(r.own) != 1 {
		t.Errorf("%d settings, %d configurations, want 2 and 1", len(seen), len(r.own))
	}
	for i := range 100 {
		set(t, r, t0, fmt.Sprintf("s%d", i), &DestinationConfig{Concurrency: new(5 + i%2)})
	}
	if len(r.own) != 2 {
		t.Errorf("%d configurations, want 2", len(r.own))
	}
}

func TestTheOverflowCanBeSet(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Max: 1, ByName: map[string]DestinationConfig{Overflow: {Concurrency: new(8)}}})
	p, _ := r.Admit(t0, Request{Destination: "a"})
	defer p.Done(t0, breaker.OutcomeSuccess)
	if got := concurrencyOf(r, "b"); got != 8 {
		t.Errorf("%d, want 8", got)
	}
	set(t, r, t0, Overflow, &DestinationConfig{Concurrency: new(6)})
	if got := concurrencyOf(r, "b"); got != 6 {
		t.Errorf("%d, want 6", got)
	}
}

func TestSetWhileEverythingHappens(t *testing.T) {
	t.Parallel()
	r := registry(t, DestinationsConfig{Max: 20, IdleAfter: time.Second, Default: DestinationConfig{Concurrency: new(2)}})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				now := at(time.Duration(i) * 10 * time.Millisecond)
				name := fmt.Sprintf("h%d", (g*7+i)%30)
				p, _ := r.Admit(now, Request{Destination: name})
				switch i % 5 {
				case 0:
					set(t, r, now, name, &DestinationConfig{Concurrency: new(1 + i%3)})
				case 1:
					set(t, r, now, name, nil)
				case 2:
					_ = r.Configure(now, DestinationsConfig{Max: 20, IdleAfter: time.Second, Default: DestinationConfig{Concurrency: new(1 + i%4)}})
				}
				p.Done(now, breaker.OutcomeSuccess)
			}
		})
	}
	wg.Wait()
	for i := range 30 {
		set(t, r, at(time.Hour), fmt.Sprintf("h%d", i), nil)
	}
	if len(r.own) != 0 {
		t.Errorf("%d configurations are kept for nobody", len(r.own))
	}
	for _, s := range r.Snapshot(at(time.Minute)) {
		if s.InUse != 0 {
			t.Errorf("%+v", s)
		}
	}
}
