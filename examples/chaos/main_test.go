package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The experiments last for seconds and judge by what happened in which of them, so that they need a machine that keeps time: SOAK=1 runs them. What
// is judged is the direction in which a mechanism works, and that nothing is lost. They do not run in parallel: each wants the machine for itself.

func soak(t *testing.T) {
	t.Helper()
	if os.Getenv("SOAK") == "" {
		t.Skip("set SOAK=1 on a machine that does nothing else")
	}
}

// An endpoint that fails at first opens its breaker and gets everything once it is well, whatever the machine.
func TestRecovers(t *testing.T) {
	t.Parallel()
	failures := 0
	backoff, err := schedule.Constant(50*time.Millisecond, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	limits := alert()
	limits.Window, limits.MinimumCalls = time.Minute, 5
	o, err := run(t.Context(), setup{
		due: every(20, 2*time.Second), maxWait: time.Minute, attempts: 100, backoff: backoff, timeout: 10 * time.Second,
		destination: pools.DestinationConfig{Breaker: limits, Budget: noBudget},
		behave: func(time.Duration) reply { // called under the endpoint's lock
			if failures++; failures <= 10 {
				return reply{status: http.StatusInternalServerError}
			}
			return ok
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := o.delivered(end); got != o.events() || o.dead > 0 || o.endpoint.doubled > 0 {
		t.Errorf("%d of %d events delivered, %d dead, %d doubled", got, o.events(), o.dead, o.endpoint.doubled)
	}
	if _, closed := o.closedAfter(0); o.opened() == 0 || !closed {
		t.Errorf("the breaker opened %d times and closed: %t", o.opened(), closed)
	}
	if o.attempts() != o.events()+10 {
		t.Errorf("%d attempts for %d events and 10 failures", o.attempts(), o.events())
	}
}

func TestSick(t *testing.T) {
	soak(t)
	var out strings.Builder
	results, err := printSick(t.Context(), &out)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		name := r.sickness.name
		if got := r.with.delivered(end); got != r.with.events() {
			t.Errorf("%s: %d of %d events delivered", name, got, r.with.events())
		}
		if with, bare := r.with.between(0, sickFor), r.without.between(0, sickFor); with >= bare {
			t.Errorf("%s: %d requests with the mechanisms, %d without", name, with, bare)
		}
		switch _, opened := r.with.firstOpen(); {
		case name == "429, Retry-After" && opened:
			t.Errorf("%s: the breaker opened", name)
		case (name == "hang" || name == "refuse" || name == "500") && !opened:
			t.Errorf("%s: the breaker did not open", name)
		}
		if _, ok := r.with.closedAfter(sickFor); !ok && r.with.opened() > 0 {
			t.Errorf("%s: the breaker did not close after the repair", name)
		}
	}
}

// More attempts cost more and more while an outage lasts. A breaker makes them unnecessary.
func TestOutage(t *testing.T) {
	soak(t)
	var out strings.Builder
	list, err := printOutage(t.Context(), &out)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if list[i+1].attempts() <= list[i].attempts() || list[i+1].wasted() <= list[i].wasted() {
			t.Errorf("at most %d attempts do not cost more than %d", list[i+1].setup.attempts, list[i].setup.attempts)
		}
	}
	capped, defended := list[3], list[4]
	if defended.attempts() >= capped.attempts() || defended.wasted() >= capped.wasted() {
		t.Errorf("with a breaker %d attempts and %s of failed calls, without %d and %s", defended.attempts(), defended.wasted(), capped.attempts(), capped.wasted())
	}
}

// A breaker saves the time that a stalled endpoint would hold. What it refuses waits, so that less arrives at once and more in the end.
func TestStall(t *testing.T) {
	soak(t)
	var out strings.Builder
	list, err := printStall(t.Context(), &out)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	bare, guarded := list[0], list[1]
	if guarded.wasted() >= bare.wasted()*2/3 || guarded.opened() == 0 || bare.opened() > 0 {
		t.Errorf("failed calls took %s with a breaker that opened %d times, %s without", guarded.wasted(), guarded.opened(), bare.wasted())
	}
	if guarded.delivered(end) <= bare.delivered(end) {
		t.Errorf("with a breaker %d arrived in the end, without %d", guarded.delivered(end), bare.delivered(end))
	}
}

// A breaker that counts 429 opens on a healthy endpoint and costs deliveries, while fewer 429s are seen.
func TestThrottle(t *testing.T) {
	soak(t)
	var out strings.Builder
	list, err := printThrottle(t.Context(), &out)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	counted, ignored, throttled := list[0], list[1], list[2]
	if counted.opened() == 0 || ignored.opened() > 0 || throttled.opened() > 0 {
		t.Errorf("the breaker opened %d times when 429 counts, else %d and %d", counted.opened(), ignored.opened(), throttled.opened())
	}
	if counted.delivered(end) >= ignored.delivered(end) || counted.delivered(end) >= throttled.delivered(end) {
		t.Errorf("delivered: %d when 429 counts, %d when it does not, %d when throttled", counted.delivered(end), ignored.delivered(end), throttled.delivered(end))
	}
	const status = http.StatusTooManyRequests
	if counted.endpoint.statuses[status] >= ignored.endpoint.statuses[status] || throttled.endpoint.statuses[status] >= ignored.endpoint.statuses[status] {
		t.Errorf("429s: %d when they count, %d when not, %d when throttled", counted.endpoint.statuses[status], ignored.endpoint.statuses[status],
			throttled.endpoint.statuses[status])
	}
}

// Without jitter all come back at once.
func TestJitter(t *testing.T) {
	soak(t)
	var out strings.Builder
	list, err := printJitter(t.Context(), &out)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	if none := list[0].peak(2 * bucket); none <= list[1].peak(2*bucket) || none <= list[2].peak(2*bucket) {
		t.Errorf("peaks: %d without jitter, %d with equal and %d with full", none, list[1].peak(2*bucket), list[2].peak(2*bucket))
	}
}

// Any budget at all keeps retries away from an endpoint that is down, and its size hardly matters.
func TestBudget(t *testing.T) {
	soak(t)
	var out strings.Builder
	list, err := printBudget(t.Context(), &out)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	free := list[0].between(budgetFrom, budgetTo)
	for _, o := range list[1:] {
		if got := o.between(budgetFrom, budgetTo); got*4 > free*3 {
			t.Errorf("%s: %d attempts during the outage, %d without a budget", budgetName(o.setup.destination.Budget), got, free)
		}
		if o.dead > list[0].dead {
			t.Errorf("%s: %d events died, %d without a budget", budgetName(o.setup.destination.Budget), o.dead, list[0].dead)
		}
	}
}
