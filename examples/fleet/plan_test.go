package main

import (
	"testing"
	"time"
)

// Every process works the plan out for itself, so it has to be the same each time and to be read back as it was written.
func TestPlan(t *testing.T) {
	t.Parallel()
	p := plan{Endpoints: 5000, Rate: 500, For: 2 * time.Minute, Seed: 1, Start: time.Unix(1_700_000_000, 0)}
	counts, addresses := [classes]int{}, map[string]bool{}
	for i := range p.Endpoints {
		counts[p.class(i)]++
		addresses[address(i).String()] = true
		if back := endpointAt(address(i)); back != i || !address(i).IsLoopback() {
			t.Fatalf("endpoint %d is at %s, which is read as %d", i, address(i), back)
		}
		if l := p.latency(i); l < 5*time.Millisecond || l > 80*time.Millisecond || l != p.latency(i) {
			t.Fatalf("endpoint %d answers in %s", i, l)
		}
		if p.classOf(endpointID(i)) != p.class(i) {
			t.Fatalf("the class of %s is not that of %d", endpointID(i), i)
		}
	}
	if want := [classes]int{4550, 150, 100, 100, 50, 50}; counts != want || len(addresses) != p.Endpoints {
		t.Errorf("classes %v at %d addresses, want %v at %d", counts, len(addresses), want, p.Endpoints)
	}
	if p.events() != 60_000 || p.due(60_000).Sub(p.Start) != p.For {
		t.Errorf("%d events, the one after the last due after %s", p.events(), p.due(60_000).Sub(p.Start))
	}
	for _, n := range []int{0, 1, 59_999} {
		if back, ok := p.eventNumber(eventID(n)); !ok || back != n {
			t.Errorf("event %d is read as %d, %t", n, back, ok)
		}
		if len(p.body(n)) != bodySize {
			t.Errorf("the body of event %d has %d bytes", n, len(p.body(n)))
		}
	}
	for _, id := range []string{"evt_60000", "evt_-1", "evt_01", "evt_", "other"} {
		if n, ok := p.eventNumber(id); ok {
			t.Errorf("%q is read as event %d", id, n)
		}
	}
}

// Until both runs' bounds hold there is an error for each that does not.
func TestJudge(t *testing.T) {
	t.Parallel()
	good := func(sick bool, p99 time.Duration) outcome {
		return outcome{plan: plan{Sick: sick}, latency: []time.Duration{p99}, work: work{RSS: mostRSS, GoroutinesBefore: 10, GoroutinesAfter: 10 + moreGoroutines}}
	}
	well := comparison{without: good(false, 100*time.Millisecond), with: good(true, 150*time.Millisecond)}
	if err := well.judge(timing); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
	for what, spoil := range map[string]func(*comparison){
		"lost":       func(c *comparison) { c.with.account.Lost = 1 },
		"signature":  func(c *comparison) { c.without.arrivals.SignatureFailures = 1 },
		"doubled":    func(c *comparison) { c.with.arrivals.Doubled[healthy] = 1 },
		"goroutines": func(c *comparison) { c.with.work.GoroutinesAfter++ },
		"late":       func(c *comparison) { c.without.account.UndeliveredHealthy = 1 },
		"p99":        func(c *comparison) { c.with, c.without = good(true, mostP99+1), good(false, mostP99) },
		"ratio":      func(c *comparison) { c.with = good(true, 151*time.Millisecond) },
		"memory":     func(c *comparison) { c.with.work.RSS++ },
	} {
		c := well
		if spoil(&c); c.judge(timing) == nil {
			t.Errorf("%s is not noticed", what)
		}
	}
}

// The naive retrier tries hanging endpoints again 15 s + 10 s after the first try, and dead ones after 10 s.
func TestNaive(t *testing.T) {
	t.Parallel()
	p := plan{Endpoints: 100, Rate: 100, For: time.Second, Sick: true, Start: time.Unix(1_700_000_000, 0)}
	events := [classes]int{}
	for n := range p.events() {
		events[p.class(p.endpoint(n))]++
	}
	got := naive(p, p.Start.Add(20*time.Second))
	if got[healthy] != events[healthy] || got[hanging] != events[hanging] || got[refusing] != 2*events[refusing] || got[failing] != 2*events[failing] {
		t.Errorf("requests %v of events %v", got, events)
	}
}
