package prom

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue/inspect"
	"github.com/caisson-go/caisson/worker"
)

// Observer counts a worker's events and, when scraped, reads its state. It is a [worker.Observer] and a [prometheus.Collector], and safe
// for concurrent use.
type Observer struct {
	cfg    Config
	named  map[string]bool
	worker atomic.Pointer[worker.Worker]

	kinds, queues, dependencies bounded

	vectors  []prometheus.Collector
	received *children[string, prometheus.Counter]
	settled  *children[settledKey, prometheus.Counter]
	deferred *children[deferredKey, prometheus.Counter]
	dead     *children[causeKey, prometheus.Counter]
	held     *children[causeKey, prometheus.Counter]
	handle   *children[string, prometheus.Observer]
	latency  *children[queueKindKey, prometheus.Observer]

	released, settleErrors, leaseLost, claimLost *prometheus.CounterVec
	transitions, removed, cleanErrors, calls     *prometheus.CounterVec
	abandoned, paused                            *prometheus.GaugeVec

	flapping flapping
	state    *scrape
}

type queueKindKey struct{ queue, kind string }

type settledKey struct {
	queue, kind string
	outcome     worker.Outcome
	settlement  worker.Settlement
}

type deferredKey struct {
	kind   string
	reason string
}

type causeKey struct {
	queue, kind string
	cause       dlq.Cause
}

var (
	_ worker.Observer      = (*Observer)(nil)
	_ prometheus.Collector = (*Observer)(nil)
)

// New returns an observer, registered with cfg.Registerer.
func New(cfg Config) (*Observer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("prometheus observer: %w", err)
	}
	o := &Observer{cfg: cfg, named: make(map[string]bool)}
	for _, name := range cfg.Destinations {
		o.named[name] = true
	}
	o.makeHot()
	o.makeRare()
	o.state = newScrape(o)
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(o); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
		if own, ok := cfg.Broker.(inspect.Gauges); ok {
			if err := cfg.Registerer.Register(brokerGauges{o, own}); err != nil {
				return nil, fmt.Errorf("register metrics of the broker: %w", err)
			}
		}
	}
	return o, nil
}

// Attach gives the observer the worker whose state it shows. A later worker takes the place of an earlier one.
func (o *Observer) Attach(w *worker.Worker) { o.worker.Store(w) }

// makeHot makes the metrics that each job moves.
func (o *Observer) makeHot() {
	received, settled, deferred := metricReceived.counter(), metricSettled.counter(), metricDeferred.counter()
	dead, held := metricDead.counter(), metricHeld.counter()
	handle, latency := metricHandle.histogram(handleBuckets), metricLatency.histogram(latencyBuckets)
	o.vectors = append(o.vectors, received, settled, deferred, dead, held, handle, latency)

	o.received = newChildren(func(q string) prometheus.Counter { return received.WithLabelValues(o.queues.fold(q)) })
	o.settled = newChildren(func(k settledKey) prometheus.Counter {
		return settled.WithLabelValues(o.queues.fold(k.queue), o.kinds.fold(k.kind), k.outcome.String(), k.settlement.String())
	})
	o.deferred = newChildren(func(k deferredKey) prometheus.Counter {
		return deferred.WithLabelValues(o.kinds.fold(k.kind), string(k.reason))
	})
	o.dead = newChildren(func(k causeKey) prometheus.Counter {
		return dead.WithLabelValues(o.queues.fold(k.queue), o.kinds.fold(k.kind), foldCause(k.cause))
	})
	o.held = newChildren(func(k causeKey) prometheus.Counter {
		return held.WithLabelValues(o.queues.fold(k.queue), o.kinds.fold(k.kind), foldCause(k.cause))
	})
	o.handle = newChildren(func(kind string) prometheus.Observer { return handle.WithLabelValues(o.kinds.fold(kind)) })
	o.latency = newChildren(func(k queueKindKey) prometheus.Observer {
		return latency.WithLabelValues(o.queues.fold(k.queue), o.kinds.fold(k.kind))
	})
}

// makeRare makes the metrics that only trouble moves.
func (o *Observer) makeRare() {
	counter := func(m metric) *prometheus.CounterVec {
		v := m.counter()
		o.vectors = append(o.vectors, v)
		return v
	}
	o.released, o.settleErrors = counter(metricReleased), counter(metricSettleErrors)
	o.leaseLost, o.claimLost = counter(metricLeaseLost), counter(metricClaimLost)
	o.transitions, o.calls = counter(metricTransitions), counter(metricCalls)
	o.removed, o.cleanErrors = counter(metricRemoved), counter(metricCleanErrors)
	o.abandoned, o.paused = metricAbandoned.gauge(), metricPaused.gauge()
	o.vectors = append(o.vectors, o.abandoned, o.paused)
}

// Observe implements [worker.Observer].
func (o *Observer) Observe(event worker.Event) {
	switch e := event.(type) {
	case *worker.Settled:
		o.observeSettled(e)
	case *worker.Received:
		o.received.of(e.Queue).Add(float64(e.Count))
	case *worker.Lost:
		lost := o.leaseLost
		if errors.Is(e.Err, worker.ErrClaimLost) {
			lost = o.claimLost
		}
		lost.WithLabelValues(o.kinds.fold(e.Kind)).Inc()
	case *worker.Abandoned:
		g := o.abandoned.WithLabelValues(o.kinds.fold(e.Kind))
		if e.Returned {
			g.Dec()
		} else {
			g.Inc()
		}
	case *worker.BreakerChanged:
		o.transitions.WithLabelValues(e.From.String(), e.To.String(), string(e.Reason), o.destination(e.Destination)).Inc()
		o.flapping.record(e.Transition)
	case *worker.Paused:
		o.paused.WithLabelValues(o.queues.fold(e.What)).Set(oneIf(e.Err != nil))
	case *worker.Released:
		o.released.WithLabelValues(strconv.FormatBool(e.Probe)).Add(float64(e.Count))
	case *worker.CleanUp:
		o.removed.WithLabelValues(e.What).Add(float64(e.Removed))
		if e.Err != nil {
			o.cleanErrors.WithLabelValues(e.What).Inc()
		}
	}
}

func (o *Observer) observeSettled(e *worker.Settled) {
	o.settled.of(settledKey{e.Queue, e.Kind, e.Outcome, e.Settlement}).Inc()
	if e.Handle > 0 {
		o.handle.of(e.Kind).Observe(e.Handle.Seconds())
	}
	if e.Outcome == worker.OutcomeSucceeded {
		o.latency.of(queueKindKey{e.Queue, e.Kind}).Observe(max(e.Latency.Seconds(), 0))
	}
	if e.Outcome == worker.OutcomeDeferred {
		o.deferred.of(deferredKey{e.Kind, e.Reason}).Inc()
	}
	switch {
	case e.SettleErr != nil:
		o.settleErrors.WithLabelValues(o.queues.fold(e.Queue)).Inc()
	case e.Settlement == worker.SettlementDeadLetter:
		o.dead.of(causeKey{e.Queue, e.Kind, e.Cause}).Inc()
	case e.Settlement == worker.SettlementHold:
		o.held.of(causeKey{e.Queue, e.Kind, e.Cause}).Inc()
	}
}

// destination is the label of a destination.
func (o *Observer) destination(name string) string {
	if o.named[name] {
		return name
	}
	return Other
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
