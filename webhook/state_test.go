package webhook

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/worker"
)

// own are the breaker and limits of an endpoint.
func own(e Endpoint) *pools.DestinationConfig {
	cfg := e.DestinationConfig()
	return &cfg
}

// set gives a running worker its endpoints anew, as a mirror of a registry would: the handler's first, then the destinations'.
func (w running) set(t *testing.T, endpoints ...Endpoint) {
	t.Helper()
	if err := w.endpoints.Replace(endpoints); err != nil {
		t.Fatal(err)
	}
	for _, e := range endpoints {
		if err := Apply(w.Destinations(), time.Now(), e, own(e)); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *rig) events20(endpoint, prefix string) {
	r.t.Helper()
	for i := range 20 {
		r.enqueue(NewDelivery(endpoint, fmt.Sprintf("%s_%d", prefix, i), nil, nil))
	}
}

func settlement(s worker.Settlement) func(worker.Settled) bool {
	return func(e worker.Settled) bool { return e.Settlement == s }
}

// TestPausedEndpoint: its jobs are held without a call, and delivered once it is enabled, none twice, and with no attempt spent.
func TestPausedEndpoint(t *testing.T) {
	t.Parallel()
	for _, state := range []State{StatePaused, StateDisabled} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			rec := newReceiver(t, status(http.StatusOK))
			e := endpointAt("shop", rec.URL)
			r := newRig(t)
			w := r.start(Config{}, e)
			closed := e
			closed.State, closed.Reason = state, ReasonFailing
			w.set(t, closed)
			r.events20("shop", "evt")
			for _, s := range r.await(20, any1) {
				if s.Settlement != worker.SettlementHold || s.Cause != dlq.CauseDestinationOpen || s.Reason != "forced_open" {
					t.Errorf("%s, %s, %s", s.Settlement, s.Cause, s.Reason)
				}
			}
			if held := r.heldFor("shop"); held != 20 || len(rec.requests()) != 0 {
				t.Fatalf("%d held, %d calls", held, len(rec.requests()))
			}
			w.set(t, e)
			for _, s := range r.await(20, outcome(worker.OutcomeSucceeded)) {
				if s.Job.Attempt != 1 {
					t.Errorf("attempt %d", s.Job.Attempt)
				}
			}
			if held := r.heldFor("shop"); held != 0 || len(rec.requests()) != 20 {
				t.Errorf("%d held, %d calls", held, len(rec.requests()))
			}
		})
	}
}

func (r *rig) heldFor(endpoint string) int {
	r.t.Helper()
	n, err := r.dead.Count(r.t.Context(), dlq.Filter{States: []dlq.State{dlq.StateHeld}, Destination: endpoint})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// TestPauseThatTheWorkerDoesNotKnowYet: the handler is the net below: no call is made, and the job is held all the same.
func TestPauseThatTheWorkerDoesNotKnowYet(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, status(http.StatusOK))
	e := endpointAt("shop", rec.URL)
	r := newRig(t)
	w := r.start(Config{}, e)
	paused := e
	paused.State = StatePaused
	if err := w.endpoints.Replace([]Endpoint{paused}); err != nil {
		t.Fatal(err)
	}
	r.enqueue(NewDelivery("shop", "evt_1", nil, nil))
	if s := r.await(1, any1)[0]; s.Settlement != worker.SettlementHold || s.Reason != worker.ReasonHeld {
		t.Errorf("%s, %s", s.Settlement, s.Reason)
	}
	closed(t, w, "shop", 0)
	w.set(t, e)
	if s := r.await(1, outcome(worker.OutcomeSucceeded))[0]; s.Job.Attempt != 1 || len(rec.requests()) != 1 {
		t.Errorf("attempt %d, %d calls", s.Job.Attempt, len(rec.requests()))
	}
}

// TestGoneEndpointLetsItsJobsGo: what was held for an endpoint that turns out to be gone becomes dead letters, without a call and without waiting
// for its breaker, its gate or its rate.
func TestGoneEndpointLetsItsJobsGo(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, status(http.StatusOK))
	e := endpointAt("shop", rec.URL)
	e.Rate = 0.01
	r := newRig(t)
	w := r.start(Config{}, e)
	paused, over := e, e
	paused.State = StatePaused
	over.State, over.Reason = StateDisabled, ReasonGone
	w.set(t, paused)
	r.events20("shop", "evt")
	r.await(20, settlement(worker.SettlementHold))
	w.Destinations().Throttle("shop", time.Now(), time.Now().Add(time.Hour))
	w.set(t, over)
	for _, s := range r.await(20, settlement(worker.SettlementDeadLetter)) {
		if s.Cause != dlq.CauseEndpointGone {
			t.Errorf("%s", s.Cause)
		}
	}
	if n := len(rec.requests()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// TestDeletedEndpointLetsItsJobsGo: they wait as long as those of any unknown endpoint, and become dead letters.
func TestDeletedEndpointLetsItsJobsGo(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, status(http.StatusOK))
	e := endpointAt("shop", rec.URL)
	r := newRig(t)
	w := r.start(Config{UnknownEndpointAfter: time.Millisecond}, e)
	paused := e
	paused.State = StatePaused
	w.set(t, paused)
	r.events20("shop", "evt")
	r.await(20, settlement(worker.SettlementHold))
	w.set(t)
	if err := Apply(w.Destinations(), time.Now(), Endpoint{ID: "shop"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.await(20, settlement(worker.SettlementDeadLetter)) {
		if s.Cause != dlq.CauseEndpointGone {
			t.Errorf("%s", s.Cause)
		}
	}
	if n := len(rec.requests()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// TestApply: limits follow the endpoint, an endpoint that is well is not remembered for it, and the breaker of one that comes back starts anew.
func TestApply(t *testing.T) {
	t.Parallel()
	d, err := pools.NewDestinations(pools.DestinationsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	apply := func(e Endpoint, deleted bool) {
		t.Helper()
		cfg := own(e)
		if deleted {
			cfg = nil
		}
		if err := Apply(d, now, e, cfg); err != nil {
			t.Fatal(err)
		}
	}
	e := Endpoint{ID: "shop", Concurrency: 7}
	apply(e, false)
	if n := d.Len(); n != 0 {
		t.Errorf("%d destinations are remembered for endpoints that nobody called", n)
	}
	for range 5 {
		p, v := d.Admit(now, pools.Request{Destination: "shop"})
		if !v.OK() {
			t.Fatal(v)
		}
		p.Done(now, breaker.OutcomeFailure)
	}
	see := func() pools.DestinationSnapshot {
		t.Helper()
		s, ok := d.Lookup("shop", now)
		if !ok {
			t.Fatal("the destination is not known")
		}
		return s
	}
	if s := see(); s.State != breaker.StateOpen || s.Concurrency != 7 {
		t.Fatalf("%+v", s)
	}
	apply(e, false) // another change of an active endpoint leaves its breaker alone
	if s := see(); s.State != breaker.StateOpen {
		t.Errorf("%+v", s)
	}
	e.State = StatePaused
	for range 2 {
		apply(e, false)
		if s := see(); s.Override != breaker.OverrideOpen || s.Verdict.Reason != pools.ReasonForcedOpen {
			t.Errorf("%+v", s)
		}
	}
	e.State, e.Concurrency = StateActive, 9
	apply(e, false)
	if s := see(); s.Override != breaker.OverrideNone || s.State != breaker.StateClosed || s.Concurrency != 9 || !s.Verdict.OK() {
		t.Errorf("%+v", s)
	}
	e.State = StateDisabled
	apply(e, false)
	apply(Endpoint{ID: "shop"}, true)
	if s := see(); s.Override != breaker.OverrideNone || s.Concurrency == 9 {
		t.Errorf("%+v", s)
	}
	d.Force("shop", now, breaker.OverrideClosed) // an operator's own word is none of ours
	e.State = StateActive
	apply(e, false)
	if s := see(); s.Override != breaker.OverrideClosed {
		t.Errorf("%+v", s)
	}
	huge := Endpoint{ID: "shop", Concurrency: 1 << 30}
	if err := Apply(d, now, huge, own(huge)); err == nil {
		t.Error("a concurrency that no pool takes was accepted")
	}
}
