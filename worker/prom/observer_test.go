package prom

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/worker"
)

func TestEventsAreCounted(t *testing.T) {
	t.Parallel()
	o, reg := newObserver(t, Config{Destinations: []string{"SendGrid"}})
	for _, e := range everyEvent() {
		o.Observe(e)
	}
	gather(t, reg).expect(t, series{
		`caisson_messages_received_total{queue="default"}`:                                                        3,
		`caisson_jobs_settled_total{kind="mail",outcome="succeeded",queue="default",settlement="ack"}`:            1,
		`caisson_jobs_settled_total{kind="mail",outcome="failed",queue="default",settlement="retry"}`:             1,
		`caisson_jobs_settled_total{kind="mail",outcome="deferred",queue="default",settlement="retry"}`:           1,
		`caisson_jobs_settled_total{kind="mail",outcome="rejected",queue="default",settlement="dead_letter"}`:     1,
		`caisson_jobs_settled_total{kind="mail",outcome="deferred",queue="default",settlement="hold"}`:            1,
		`caisson_jobs_deferred_total{kind="mail",reason="pool_full"}`:                                             1,
		`caisson_jobs_deferred_total{kind="mail",reason="breaker_open"}`:                                          1,
		`caisson_dead_letters_total{cause="rejected",kind="mail",queue="default"}`:                                1,
		`caisson_jobs_held_total{cause="destination_open",kind="mail",queue="default"}`:                           1,
		`caisson_settlement_errors_total{queue="default"}`:                                                        1,
		`caisson_job_handle_seconds{kind="mail"}`:                                                                 2,
		`caisson_job_latency_seconds{kind="mail",queue="default"}`:                                                1,
		`caisson_leases_lost_total{kind="mail"}`:                                                                  1,
		`caisson_claims_lost_total{kind="mail"}`:                                                                  1,
		`caisson_handlers_abandoned{kind="mail"}`:                                                                 1,
		`caisson_breaker_transitions_total{destination="sendgrid",from="closed",reason="failure_rate",to="open"}`: 1,
		`caisson_breaker_transitions_total{destination="other",from="closed",reason="slow_rate",to="open"}`:       1,
		`caisson_paused{what="store"}`:                                                                            1,
		`caisson_held_jobs_released_total{probe="true"}`:                                                          5,
		`caisson_cleanup_removed_total{what="dlq"}`:                                                               7,
		`caisson_cleanup_errors_total{what="dlq"}`:                                                                1,
		`caisson_breakers_flapping`:                                                                               0,
	})
}

// A dead letter that could not be stored is not counted as one: the message comes again.
func TestFailedSettlementCountsNoDeadLetter(t *testing.T) {
	t.Parallel()
	o, reg := newObserver(t, Config{})
	for _, e := range everyEvent() {
		if s, ok := e.(*worker.Settled); ok && s.SettleErr != nil {
			o.Observe(e)
		}
	}
	if got := gather(t, reg).with("caisson_dead_letters_total"); len(got) > 0 {
		t.Errorf("counted %v", got)
	}
}

func TestGaugesGoBack(t *testing.T) {
	t.Parallel()
	o, reg := newObserver(t, Config{})
	job := &worker.Job{ID: "1"}
	o.Observe(&worker.Abandoned{Job: job, Kind: "mail"})
	o.Observe(&worker.Abandoned{Job: job, Kind: "mail"})
	o.Observe(&worker.Abandoned{Job: job, Kind: "mail", Returned: true})
	o.Observe(&worker.Paused{What: "store", Err: worker.ErrStopping})
	o.Observe(&worker.Paused{What: "store"})
	gather(t, reg).expect(t, series{`caisson_handlers_abandoned{kind="mail"}`: 1, `caisson_paused{what="store"}`: 0})
}

func TestCallEvents(t *testing.T) {
	t.Parallel()
	o, reg := newObserver(t, Config{})
	hook := o.Call("geocoder")
	hook(pools.CallEventFellBack)
	hook(pools.CallEventFellBack)
	o.Call("geocoder")(pools.CallEventRefused)
	gather(t, reg).expect(t, series{
		`caisson_call_events_total{dependency="geocoder",event="fell_back"}`: 2,
		`caisson_call_events_total{dependency="geocoder",event="refused"}`:   1,
	})
}

func TestFlappingIsCountedByDestination(t *testing.T) {
	t.Parallel()
	o, reg := newObserver(t, Config{})
	start := time.Now()
	states := []breaker.State{breaker.StateClosed, breaker.StateOpen, breaker.StateHalfOpen}
	change := func(name string, n int, at time.Time) {
		o.Observe(&worker.BreakerChanged{Transition: breaker.Transition{
			Destination: name, From: states[n%3], To: states[(n+1)%3], Reason: breaker.TransitionReasonFailureRate, At: at,
		}})
	}
	for n := range 3 { // one outage: three transitions of each of many
		for _, name := range []string{"a", "b", "c", "d"} {
			change(name, n, start)
		}
	}
	for range 3 { // an operator's doing
		o.Observe(&worker.BreakerChanged{Transition: breaker.Transition{Destination: "a", Reason: breaker.TransitionReasonForcedOpen, At: start}})
	}
	gather(t, reg).expect(t, series{"caisson_breakers_flapping": 0})
	change("b", 3, start)
	gather(t, reg).expect(t, series{"caisson_breakers_flapping": 1})
	if n := o.flapping.count(start.Add(flapWindow)); n != 0 || len(o.flapping.last) != 0 {
		t.Errorf("after the window %d flap and %d are remembered", n, len(o.flapping.last))
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	many := make([]string, MaxDestinations+1)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"too many":  {Config{Destinations: many}, "51 names, at most 50"},
		"twice":     {Config{Destinations: []string{"Hooks.Test", "https://hooks.test/x"}}, "named twice"},
		"empty":     {Config{Destinations: []string{" "}}, "neither empty nor"},
		"other":     {Config{Destinations: []string{"OTHER"}}, "neither empty nor"},
		"durations": {Config{ScrapeTimeout: -1}, "must not be negative"},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	_, reg := newObserver(t, Config{})
	if _, err := New(Config{Registerer: reg}); err == nil {
		t.Error("a second observer on one registry went unnoticed")
	}
}

// New series made by many goroutines at once must not lose counts.
func TestObserveIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	o, reg := newObserver(t, Config{})
	events := everyEvent()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				for _, e := range events {
					o.Observe(e)
				}
			}
		})
	}
	wg.Wait()
	gather(t, reg).expect(t, series{
		`caisson_jobs_settled_total{kind="mail",outcome="succeeded",queue="default",settlement="ack"}`: 800,
		`caisson_job_handle_seconds{kind="mail"}`:                                                      1600,
	})
}
