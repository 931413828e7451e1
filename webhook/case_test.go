package webhook

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// The whole way of a hint, from the header to the delay: never earlier than it, never earlier than the schedule, and never later than the bound.
func TestRetryAfterOnTheWholeWay(t *testing.T) {
	t.Parallel()
	around, err := schedule.JitterFactor(0.8, 1.2)
	if err != nil {
		t.Fatal(err)
	}
	everySecond, err := schedule.Constant(time.Second, around)
	if err != nil {
		t.Fatal(err)
	}
	date := func(d time.Duration) string { return noon.Add(d).Format(http.TimeFormat) }
	longest := schedule.MaxRetryAfter
	var endpoints []Endpoint
	bounds := map[string][2]time.Duration{}
	for i, c := range []struct {
		header    string
		low, high time.Duration
	}{
		{"3", 3 * time.Second, 4 * time.Second},
		{date(3 * time.Second), 3 * time.Second, 4 * time.Second},
		{"0", 800 * time.Millisecond, 1200 * time.Millisecond},
		{"-5", 800 * time.Millisecond, 1200 * time.Millisecond},
		{"abc", 800 * time.Millisecond, 1200 * time.Millisecond},
		{date(-time.Hour), 800 * time.Millisecond, 1200 * time.Millisecond},
		{"99999999", longest, longest + longest/5},
	} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
				w.Header().Set("Retry-After", c.header)
				w.WriteHeader(code)
			})
			e := endpointAt(fmt.Sprintf("e%d-%d", i, code), rec.URL)
			e.Backoff = everySecond
			endpoints = append(endpoints, e)
			bounds[e.ID] = [2]time.Duration{c.low, c.high}
		}
	}
	r := newRig(t)
	r.start(Config{Now: func() time.Time { return noon }}, endpoints...)
	for _, e := range endpoints {
		r.enqueue(NewDelivery(e.ID, "evt_1", nil, nil))
	}
	first := func(s worker.Settled) bool { return s.Outcome == worker.OutcomeFailed && s.Job.Attempt == 1 }
	for _, s := range r.await(len(endpoints), first) {
		if b := bounds[s.Job.Destination]; s.Delay < b[0] || s.Delay > b[1] {
			t.Errorf("%s: %s, want %s to %s", s.Job.Destination, s.Delay, b[0], b[1])
		}
	}
}

// Deliveries that fail in the same moment come back spread over the window of their jitter.
func TestFailedDeliveriesComeBackSpread(t *testing.T) {
	t.Parallel()
	const jobs = 500
	rec := newReceiver(t, status(http.StatusNotFound)) // which no breaker minds
	e := endpointAt("shop", rec.URL)
	e.Concurrency = 100
	r := newRig(t)
	r.start(Config{}, e)
	for i := range jobs {
		r.enqueue(NewDelivery("shop", fmt.Sprintf("evt_%d", i), nil, nil))
	}
	low, high := schedule.WebhookBackoff.Shortest(1), schedule.WebhookBackoff.Longest(1)
	first, last := high, low
	for _, s := range r.await(jobs, func(s worker.Settled) bool { return s.Outcome == worker.OutcomeFailed && s.Job.Attempt == 1 }) {
		if s.Delay < low || s.Delay > high {
			t.Errorf("a delay of %s, the schedule's are %s to %s", s.Delay, low, high)
		}
		first, last = min(first, s.Delay), max(last, s.Delay)
	}
	if spread := last - first; spread < (high-low)*8/10 {
		t.Errorf("%d deliveries come back within %s of a window of %s", jobs, spread, high-low)
	}
}

// A tenant whose endpoint hangs, one whose endpoint is paused and one whose endpoint throttles keep to themselves; none of their jobs dies of it.
func TestSickEndpointsKeepToThemselves(t *testing.T) {
	t.Parallel()
	hanging := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	throttling := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	well := newReceiver(t, status(http.StatusOK))
	endpoints := []Endpoint{
		endpointAt("hanging", hanging.URL), endpointAt("throttling", throttling.URL), endpointAt("paused", well.URL), endpointAt("well", well.URL),
	}
	endpoints[0].Concurrency, endpoints[2].State = 2, StatePaused
	r := newRig(t)
	w := r.start(Config{}, endpoints...)
	w.set(t, endpoints...)
	var batch []worker.NewJob
	for _, e := range endpoints {
		for i := range 50 {
			batch = append(batch, NewDelivery(e.ID, fmt.Sprintf("evt_%d", i), nil, nil))
		}
	}
	r.enqueue(batch...)
	for _, s := range r.await(50, outcome(worker.OutcomeSucceeded)) {
		if s.Job.Destination != "well" || s.Job.Attempt != 1 {
			t.Errorf("%s, attempt %d", s.Job.Destination, s.Job.Attempt)
		}
	}
	if n := len(throttling.requests()); n > 3 {
		t.Errorf("%d calls to an endpoint that asked for a minute: no more than were under way", n)
	}
	if n, err := r.dead.Count(t.Context(), dlq.Filter{States: []dlq.State{dlq.StateDead}}); n != 0 || err != nil {
		t.Errorf("%d are dead, %v", n, err)
	}
}
