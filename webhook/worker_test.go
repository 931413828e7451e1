package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// allBytes is a body that no encoder would leave alone.
func allBytes() []byte {
	body := make([]byte, 256)
	for i := range body {
		body[i] = byte(i)
	}
	return body
}

// TestDeliveredOnce: two failures, then a success, over the whole way from the client; the same event a second time makes no call.
func TestDeliveredOnce(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n < 2 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	e := endpointAt("shop", rec.URL)
	e.Backoff = soon(t)
	verifier, err := signature.NewVerifier(e.Secrets[0].Reveal())
	if err != nil {
		t.Fatal(err)
	}
	var tries atomic.Int64
	clock := func() time.Time { return noon.Add(time.Duration(tries.Load()) * 6 * time.Minute) }
	r := newRig(t)
	r.start(Config{Now: clock, Observe: func(a Attempt) {
		if got, want := a.Number, int(tries.Add(1)); got != want || a.Endpoint != "shop" || a.Event != "evt_1" {
			t.Errorf("attempt %+v, want number %d", a, want)
		}
	}}, e)
	job := NewDelivery("shop", "evt_1", allBytes(), map[string]string{"content-type": "application/octet-stream"})
	r.enqueue(job)
	r.await(1, outcome(worker.OutcomeSucceeded))
	r.enqueue(job)
	r.await(1, outcome(worker.OutcomeDuplicate))

	seen := rec.requests()
	if len(seen) != 3 {
		t.Fatalf("%d calls, want 3", len(seen))
	}
	for i, got := range seen {
		if err := verifier.Verify(got.header, allBytes(), noon.Add(time.Duration(i)*6*time.Minute)); err != nil {
			t.Errorf("call %d: %v", i+1, err)
		}
		if diff := cmp.Diff(allBytes(), got.body); diff != "" || got.header.Get(signature.HeaderID) != "evt_1" {
			t.Errorf("call %d: id %q, body (-want +got):\n%s", i+1, got.header.Get(signature.HeaderID), diff)
		}
	}
}

// TestExhausted: the dead letter says what the endpoint answered, and holds the bytes for a replay.
func TestExhausted(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte("field amount is missing"))
	})
	e := endpointAt("shop", rec.URL)
	e.Backoff = soon(t)
	r := newRig(t)
	w := r.start(Config{}, e)
	r.enqueue(NewDelivery("shop", "evt_1", allBytes(), nil))
	r.await(1, func(e worker.Settled) bool { return e.Settlement == worker.SettlementDeadLetter })
	list := r.entries()
	if len(list) != 1 || list[0].Cause != dlq.CauseExhausted || list[0].AttemptCount != 3 || len(rec.requests()) != 3 {
		t.Fatalf("%d calls, %+v", len(rec.requests()), list)
	}
	if want := "endpoint answered 422 Unprocessable Entity: field amount is missing"; list[0].Error != want {
		t.Errorf("%q, want %q", list[0].Error, want)
	}
	entry, err := r.dead.Get(t.Context(), list[0].ID)
	if err != nil || string(entry.Message.Body) != string(allBytes()) {
		t.Errorf("body %q, %v", entry.Message.Body, err)
	}
	closed(t, w, "shop", 0)
}

// closed fails unless the breaker of an endpoint is closed and has counted that many failures.
func closed(t *testing.T, w running, endpoint string, failures int) {
	t.Helper()
	d, ok := w.Destinations().Lookup(endpoint, time.Now())
	if !ok || d.State != breaker.StateClosed || d.Failures != failures {
		t.Errorf("breaker of %s: %+v", endpoint, d)
	}
}

// TestClientErrorsRejected: 400 is the job's fault: one call each, no outage.
func TestClientErrorsRejected(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n < 20 {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	e := endpointAt("shop", rec.URL)
	e.ClientErrors = ClientErrorsReject
	r := newRig(t)
	w := r.start(Config{}, e)
	for i := range 20 {
		r.enqueue(NewDelivery("shop", fmt.Sprintf("evt_%d", i), nil, nil))
	}
	r.await(20, outcome(worker.OutcomeRejected))
	r.enqueue(NewDelivery("shop", "evt_good", nil, nil))
	r.await(1, outcome(worker.OutcomeSucceeded))
	if n := len(rec.requests()); n != 21 {
		t.Errorf("%d calls, want 21", n)
	}
	for _, entry := range r.entries() {
		if entry.Cause != dlq.CauseRejected || entry.AttemptCount != 1 {
			t.Errorf("%+v", entry)
		}
	}
	closed(t, w, "shop", 0)
	if len(r.opened) != 0 {
		t.Error("the breaker moved")
	}
}

// TestOnlyOutagesOpenTheBreaker: 500, 404, 500, 404 ...: it opens after the fifth 500, and a 404 neither resets nor closes it.
func TestOnlyOutagesOpenTheBreaker(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		w.WriteHeader([]int{500, 404}[n%2])
	})
	e := endpointAt("shop", rec.URL)
	e.ClientErrors, e.Concurrency = ClientErrorsReject, 1
	r := newRig(t)
	r.start(Config{}, e)
	for i := range 12 {
		r.enqueue(NewDelivery("shop", fmt.Sprintf("evt_%d", i), nil, nil))
	}
	tried := r.await(9, func(e worker.Settled) bool { return e.Outcome != worker.OutcomeDeferred })
	if tr := <-r.opened; tr.To != breaker.StateOpen || tr.Destination != "shop" {
		t.Errorf("%+v", tr)
	}
	failed := 0
	for _, e := range tried {
		if e.Outcome == worker.OutcomeFailed {
			failed++
		}
	}
	r.await(3, func(e worker.Settled) bool { return e.Reason == "breaker_open" })
	if n := len(rec.requests()); n != 9 || failed != 5 {
		t.Errorf("%d calls, %d failed; want 9 and 5", n, failed)
	}
}

// TestStopIsNeutral: calls that our own stop cuts off spend no attempt and count against nobody; the next worker makes them again.
func TestStopIsNeutral(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 10)
	var healthy atomic.Bool
	rec := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		if !healthy.Load() {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
	})
	e := endpointAt("shop", rec.URL)
	e.Concurrency = 6
	r := newRig(t)
	w := r.start(Config{}, e)
	for i := range 6 {
		r.enqueue(NewDelivery("shop", fmt.Sprintf("evt_%d", i), nil, nil))
	}
	for range 6 {
		<-arrived
	}
	w.stop()
	r.await(6, outcome(worker.OutcomeInterrupted))
	closed(t, w, "shop", 0)

	healthy.Store(true)
	r.start(Config{}, e)
	for _, e := range r.await(6, outcome(worker.OutcomeSucceeded)) {
		if e.Job.Attempt != 1 {
			t.Errorf("job %s: attempt %d, want 1: the stop spent one", e.Job.ID, e.Job.Attempt)
		}
	}
}

// TestThrottled: a 429 holds the whole endpoint back for as long as it asked, and no job dies of waiting.
func TestThrottled(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	e := endpointAt("shop", rec.URL)
	e.Backoff = soon(t)
	r := newRig(t)
	w := r.start(Config{}, e)
	r.enqueue(NewDelivery("shop", "evt_1", nil, nil))
	throttled := r.await(1, any1)[0]
	if throttled.Outcome != worker.OutcomeFailed || throttled.Delay < time.Second {
		t.Errorf("%s with a delay of %s, want at least 1s", throttled.Outcome, throttled.Delay)
	}
	r.enqueue(NewDelivery("shop", "evt_2", nil, nil))
	if e := r.await(1, any1)[0]; e.Outcome != worker.OutcomeDeferred || e.Reason != "throttled" {
		t.Errorf("the second job: %s, %s", e.Outcome, e.Reason)
	}
	for _, e := range r.await(2, outcome(worker.OutcomeSucceeded)) {
		if want := 2 - strings.Count(e.Job.Headers[signature.HeaderID], "2"); e.Job.Attempt != want {
			t.Errorf("%s: attempt %d, want %d", e.Job.Headers[signature.HeaderID], e.Job.Attempt, want)
		}
	}
	closed(t, w, "shop", 0)
}

// TestDeferredJobsLive: a destination that is closed to its jobs puts them back for longer than their attempts would last, and spends none.
func TestDeferredJobsLive(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, status(http.StatusOK))
	r := newRig(t)
	w := r.start(Config{}, endpointAt("shop", rec.URL))
	w.Destinations().Throttle("shop", time.Now(), time.Now().Add(5*time.Second))
	r.enqueue(NewDelivery("shop", "evt_1", nil, nil))
	for _, e := range r.await(3, any1) {
		if e.Outcome != worker.OutcomeDeferred || e.Settlement != worker.SettlementRetry {
			t.Errorf("throttled: %s, %s", e.Outcome, e.Settlement)
		}
	}
	if e := r.await(1, outcome(worker.OutcomeSucceeded))[0]; e.Job.Attempt != 1 {
		t.Errorf("throttled: attempt %d", e.Job.Attempt)
	}
	w.Destinations().Force("shop", time.Now(), breaker.OverrideOpen)
	r.enqueue(NewDelivery("shop", "evt_2", nil, nil))
	if e := r.await(1, any1)[0]; e.Outcome != worker.OutcomeDeferred || e.Settlement != worker.SettlementHold {
		t.Errorf("forced open: %s, %s", e.Outcome, e.Settlement)
	}
	w.Destinations().Force("shop", time.Now(), breaker.OverrideNone)
	if e := r.await(1, outcome(worker.OutcomeSucceeded))[0]; e.Job.Attempt != 1 || len(rec.requests()) != 2 || len(r.entries()) != 0 {
		t.Errorf("attempt %d, %d calls, %d dead letters", e.Job.Attempt, len(rec.requests()), len(r.entries()))
	}
}

// TestHangingEndpointKeepsToItself: fast endpoints do not wait for one that hangs, which holds no more than its share.
func TestHangingEndpointKeepsToItself(t *testing.T) {
	t.Parallel()
	var inside atomic.Int64
	hanging := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		if n := inside.Add(1); n > 2 {
			t.Errorf("the hanging endpoint holds %d slots, want at most 2", n)
		}
		<-r.Context().Done()
		inside.Add(-1)
	})
	fast := newReceiver(t, status(http.StatusOK))
	slow := endpointAt("slow", hanging.URL)
	slow.Concurrency = 2
	r := newRig(t)
	r.start(Config{}, slow, endpointAt("fast", fast.URL))
	var jobs []worker.NewJob
	for _, id := range []string{"slow", "fast"} {
		for i := range 50 {
			jobs = append(jobs, NewDelivery(id, fmt.Sprintf("evt_%d", i), nil, nil))
		}
	}
	r.enqueue(jobs...)
	r.await(50, outcome(worker.OutcomeSucceeded))
	if n := len(fast.requests()); n != 50 {
		t.Errorf("%d fast deliveries, want 50", n)
	}
	if inside.Load() == 0 {
		t.Error("nothing hung: the test shows nothing")
	}
}

// TestOwnSchedule: a list of n delays makes n+1 attempts, whether that is less than the kind has or more.
func TestOwnSchedule(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusBadRequest) })
	r := newRig(t)
	var endpoints []Endpoint
	for id, delays := range map[string]int{"short": 1, "long": 4} {
		e := endpointAt(id, rec.URL)
		own, err := schedule.Fixed(slices.Repeat([]time.Duration{time.Millisecond}, delays), schedule.JitterNone)
		if err != nil {
			t.Fatal(err)
		}
		e.Backoff = own
		endpoints = append(endpoints, e)
	}
	r.start(Config{}, endpoints...) // the kind has 3 attempts here
	for _, e := range endpoints {
		r.enqueue(NewDelivery(e.ID, "evt_1", nil, nil))
	}
	r.await(2, func(e worker.Settled) bool { return e.Settlement == worker.SettlementDeadLetter })
	for _, letter := range r.entries() {
		if want := map[string]int{"short": 2, "long": 5}[letter.Destination]; letter.AttemptCount != want || letter.Cause != dlq.CauseExhausted {
			t.Errorf("%s: %d attempts, %s, want %d", letter.Destination, letter.AttemptCount, letter.Cause, want)
		}
	}
}
