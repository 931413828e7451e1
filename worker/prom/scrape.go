package prom

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/worker"
)

// scrape reads state when metrics are collected.
type scrape struct {
	o     *Observer
	descs map[string]*prometheus.Desc
	build []string

	depths *probe[depths]
	dead   *probe[dlq.Depth]
	ping   *probe[struct{}]
}

func newScrape(o *Observer) *scrape {
	s := &scrape{o: o, descs: make(map[string]*prometheus.Desc), build: buildLabels()}
	for _, m := range []metric{
		metricReady, metricInFlight, metricSlots, metricSlotsInUse, metricTimeout, metricPoolSize, metricPoolInUse, metricPoolWaiting, metricPoolRejected,
		metricDestinations, metricPressed, metricLaneSlots, metricLaneInUse, metricBreakerState, metricOpenSeconds, metricFlapping, metricQueueDepth, metricDLQDepth, metricHeldJobs,
		metricStoreUp, metricBuild,
	} {
		s.descs[m.name] = m.desc()
	}
	s.depths = &probe[depths]{cfg: &o.cfg, ask: s.askDepths}
	s.dead = &probe[dlq.Depth]{cfg: &o.cfg, ask: func(ctx context.Context) (dlq.Depth, error) { return o.cfg.DeadLetters.Depth(ctx) }}
	s.ping = &probe[struct{}]{cfg: &o.cfg, ask: func(ctx context.Context) (struct{}, error) { return struct{}{}, o.cfg.Store.Ping(ctx) }}
	return s
}

// Describe implements [prometheus.Collector].
func (o *Observer) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range o.vectors {
		v.Describe(ch)
	}
	for _, d := range o.state.descs {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. It takes at most [Config.ScrapeTimeout].
func (o *Observer) Collect(ch chan<- prometheus.Metric) {
	for _, v := range o.vectors {
		v.Collect(ch)
	}
	s := out{ch, o.state.descs}
	s.gauge(metricBuild, 1, o.state.build...)
	s.gauge(metricFlapping, float64(o.flapping.count(time.Now())))
	if w := o.worker.Load(); w != nil {
		o.collectWorker(s, w)
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	if o.cfg.Broker != nil {
		asking.Go(func() { o.collectDepths(s) })
	}
	if o.cfg.DeadLetters != nil {
		asking.Go(func() { o.collectDead(s) })
	}
	if o.cfg.Store != nil {
		asking.Go(func() {
			_, err := o.state.ping.get()
			s.gauge(metricStoreUp, oneIf(err == nil), "idempotency")
		})
	}
}

// out sends metrics of one collection.
type out struct {
	ch    chan<- prometheus.Metric
	descs map[string]*prometheus.Desc
}

func (s out) gauge(m metric, value float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(s.descs[m.name], prometheus.GaugeValue, value, labels...)
}

func (o *Observer) collectWorker(s out, w *worker.Worker) {
	now, state := time.Now(), w.Snapshot()
	s.gauge(metricReady, oneIf(state.NotReady == ""))
	s.gauge(metricInFlight, float64(state.InFlight))
	for _, q := range state.Queues {
		s.gauge(metricSlots, float64(q.Slots), q.Name)
		s.gauge(metricSlotsInUse, float64(q.InUse), q.Name)
	}
	timeouts := make(map[string]float64)
	for _, k := range state.Kinds {
		label := o.kinds.fold(k.Name)
		timeouts[label] = max(timeouts[label], k.Timeout.Seconds())
	}
	for label, seconds := range timeouts {
		s.gauge(metricTimeout, seconds, label)
	}
	for _, p := range state.Pools {
		s.gauge(metricPoolSize, float64(p.Size), p.Kind)
		s.gauge(metricPoolInUse, float64(p.InUse), p.Kind)
		s.gauge(metricPoolWaiting, float64(p.Waiting), p.Kind)
		s.ch <- prometheus.MustNewConstMetric(s.descs[metricPoolRejected.name], prometheus.CounterValue, float64(p.Rejected), p.Kind)
	}
	o.collectDestinations(s, state.Destinations, w.Destinations().Len(), now)
	collectPressure(s, w.Destinations(), now)
}

// collectPressure shows how many destinations are held back, and never which.
func collectPressure(s out, d *pools.Destinations, now time.Time) {
	p, lane := d.Pressure(now), d.SlowLane()
	s.gauge(metricPressed, float64(p.Slow), "slow")
	s.gauge(metricPressed, float64(p.New), "new")
	s.gauge(metricPressed, float64(p.Limited), "limited")
	s.gauge(metricLaneSlots, float64(lane.Slots))
	s.gauge(metricLaneInUse, float64(lane.InUse))
}

// The states of a destination as labels. An override hides the breaker's own state, throttling only shows on a closed one.
var destinationStates = []string{"closed", "throttled", "half_open", "open", "forced_closed", "forced_open"}

func stateOf(d pools.DestinationSnapshot) string {
	switch {
	case d.Override != breaker.OverrideNone:
		return d.Override.String()
	case d.State != breaker.StateClosed:
		return d.State.String()
	case !d.ThrottledUntil.IsZero():
		return "throttled"
	}
	return "closed"
}

// collectDestinations shows what is not simply closed; remembered is how many destinations there are in all.
func (o *Observer) collectDestinations(s out, unhealthy []pools.DestinationSnapshot, remembered int, now time.Time) {
	count := make(map[string]int)
	named := make(map[string]string)
	open := map[string]float64{Other: 0}
	for _, name := range o.cfg.Destinations {
		named[name], open[name] = "closed", 0
	}
	listed := 0
	for _, d := range unhealthy {
		state, label := stateOf(d), o.destination(d.Destination)
		count[state]++
		if d.Destination != pools.Overflow { // which is not among the remembered ones
			listed++
		}
		if label != Other {
			named[label] = state
		}
		if !d.OpenSince.IsZero() {
			open[label] = max(open[label], now.Sub(d.OpenSince).Seconds())
		}
	}
	count["closed"] += max(remembered-listed, 0)
	for _, state := range destinationStates {
		s.gauge(metricDestinations, float64(count[state]), state)
		for name, is := range named {
			s.gauge(metricBreakerState, oneIf(is == state), name, state)
		}
	}
	for label, seconds := range open {
		s.gauge(metricOpenSeconds, seconds, label)
	}
}

// collectDead adds up what folds into one label: the store may hold queues and destinations of years.
func (o *Observer) collectDead(s out) {
	depth, err := o.state.dead.get()
	s.gauge(metricStoreUp, oneIf(err == nil), "dlq")
	if err != nil {
		return
	}
	dead := make(map[[2]string]int) // by queue and cause
	for _, d := range depth.Dead {
		dead[[2]string{o.queues.fold(d.Queue), foldCause(d.Cause)}] += d.Count
	}
	for labels, n := range dead {
		s.gauge(metricDLQDepth, float64(n), labels[:]...)
	}
	held := map[string]int{Other: 0}
	for _, name := range o.cfg.Destinations {
		held[name] = 0
	}
	for _, h := range depth.Held {
		held[o.destination(h.Destination)] += h.Count
	}
	for label, n := range held {
		s.gauge(metricHeldJobs, float64(n), label)
	}
}

// buildLabels tells which build of Caisson this is: the module's version where it is a dependency, the revision of the main module.
func buildLabels() []string {
	version, revision, goVersion := "unknown", "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
		for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
			if m.Path == "github.com/caisson-go/caisson" && m.Version != "" {
				version = m.Version
			}
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	return []string{version, revision, goVersion}
}
