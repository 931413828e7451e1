package prom

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newObserver(t testing.TB, cfg Config) (*Observer, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	cfg.Registerer = reg
	o, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o, reg
}

// series is a scrape in the form "name{label="value",...}" to value; histograms give their count.
type series map[string]float64

func gather(t testing.TB, reg prometheus.Gatherer) series {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(series)
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			// The two that a metric is not are nil, and answer 0.
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// expect checks that each of want is there with its value.
func (s series) expect(t *testing.T, want series) {
	t.Helper()
	for name, value := range want {
		if got, ok := s[name]; !ok || got != value {
			t.Errorf("%s is %v (present: %v), want %v", name, got, ok, value)
		}
	}
}

// with returns the names of the series of one metric.
func (s series) with(metric string) (names []string) {
	for name := range s {
		if name == metric || strings.HasPrefix(name, metric+"{") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// everyEvent is at least one event of each sort, and of each settlement.
func everyEvent() []worker.Event {
	job := &worker.Job{ID: "job-1", Kind: "mail"}
	broken := errors.New("disk on fire")
	settled := func(o worker.Outcome, s worker.Settlement, change func(*worker.Settled)) *worker.Settled {
		e := &worker.Settled{Job: job, Queue: "default", Kind: "mail", Outcome: o, Settlement: s}
		if change != nil {
			change(e)
		}
		return e
	}
	now := time.Now()
	return []worker.Event{
		&worker.Received{Queue: "default", Count: 3},
		&worker.Started{Job: job, Kind: "mail"},
		settled(worker.OutcomeSucceeded, worker.SettlementAck, func(e *worker.Settled) { e.Handle, e.Latency = time.Second, 2*time.Second }),
		settled(worker.OutcomeFailed, worker.SettlementRetry, func(e *worker.Settled) { e.Handle, e.Err = time.Second, broken }),
		settled(worker.OutcomeDeferred, worker.SettlementRetry, func(e *worker.Settled) { e.Reason = worker.ReasonPoolFull }),
		settled(worker.OutcomeRejected, worker.SettlementDeadLetter, func(e *worker.Settled) { e.Cause = dlq.CauseRejected }),
		settled(worker.OutcomeDeferred, worker.SettlementHold, func(e *worker.Settled) {
			e.Reason, e.Cause = "breaker_open", dlq.CauseDestinationOpen
		}),
		settled(worker.OutcomeFailed, worker.SettlementDeadLetter, func(e *worker.Settled) { e.Cause, e.SettleErr = dlq.CauseExhausted, broken }),
		&worker.Lost{Job: job, Kind: "mail", Err: worker.ErrLeaseLost},
		&worker.Lost{Job: job, Kind: "mail", Err: worker.ErrClaimLost},
		&worker.Abandoned{Job: job, Kind: "mail"},
		&worker.BreakerChanged{Transition: breaker.Transition{
			Destination: "sendgrid", From: breaker.StateClosed, To: breaker.StateOpen, Reason: breaker.TransitionReasonFailureRate, At: now,
		}},
		&worker.BreakerChanged{Transition: breaker.Transition{
			Destination: "hooks.example", From: breaker.StateClosed, To: breaker.StateOpen, Reason: breaker.TransitionReasonSlowRate, At: now,
		}},
		&worker.Paused{What: "store", Err: broken},
		&worker.Released{Destination: "sendgrid", Count: 5, Probe: true},
		&worker.CleanUp{What: "dlq", Removed: 7, Err: broken},
	}
}
