package runtime

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/queue/outbox"
)

// storeSource shows the figures of the store postgres, and of the mirror of dead letters, as they are when it is asked.
type storeSource struct{ set *backends.Set }

var (
	connections = prometheus.NewDesc("caisson_store_connections", "Connections of the pool to PostgreSQL.", []string{"state"}, nil)
	connectMost = prometheus.NewDesc("caisson_store_connections_max", "The most that it may have.", nil, nil)
	connWaits   = prometheus.NewDesc("caisson_store_connection_waits_total", "How often a connection was waited for.", nil, nil)
	connWaited  = prometheus.NewDesc("caisson_store_connection_wait_seconds_total", "How long in all.", nil, nil)
	mirrored    = prometheus.NewDesc("caisson_dlq_mirror_total", "Copies of dead letters for the broker's own dead-letter queues.", []string{"result"}, nil)
)

// Describe implements [prometheus.Collector].
func (storeSource) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{connections, connectMost, connWaits, connWaited, mirrored} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. It makes no calls.
func (s storeSource) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	if s.set.Postgres != nil {
		c := s.set.Postgres.Connections()
		gauge(connections, float64(c.InUse), "in_use")
		gauge(connections, float64(c.Idle), "idle")
		gauge(connectMost, float64(c.Most))
		count(connWaits, float64(c.Waits))
		count(connWaited, c.Waited.Seconds())
	}
	if s.set.Mirror != nil {
		m := s.set.Mirror.Stats()
		count(mirrored, float64(m.Copied), "copied")
		count(mirrored, float64(m.Failed), "failed")
		count(mirrored, float64(m.Dropped), "dropped")
	}
}

// ofStore shows what the store has of its own.
func (m *metrics) ofStore(set *backends.Set) {
	if set.Postgres != nil || set.Mirror != nil {
		m.registry.MustRegister(storeSource{set})
	}
	if set.Sweeper != nil {
		m.registry.MustRegister(m.sweeps)
	}
}

func newSweeps() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "caisson_dlq_swept_total", Help: "Messages in the broker's own dead-letter queues by what a sweep made of them.",
	}, []string{"result"})
}

func (m *metrics) swept(r brokerdlq.ImportReport) {
	for result, n := range map[string]int{"imported": r.Imported, "failed": r.Failed, "restored": r.Restored, "outdated_copy": r.Outdated} {
		m.sweeps.WithLabelValues(result).Add(float64(n))
	}
}

// relayed counts what a relay does.
type relayed struct{ jobs *prometheus.CounterVec }

// outbox returns the observer of a relay.
func (m *metrics) outbox() outbox.Observer {
	r := relayed{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "caisson_outbox_jobs_total", Help: "Jobs of the outbox that were offered to the broker, by what it answered.",
	}, []string{"result"})}
	m.registry.MustRegister(r.jobs)
	return r
}

// Observe implements [outbox.Observer].
func (r relayed) Observe(e outbox.Event) {
	r.jobs.WithLabelValues("published").Add(float64(e.Published))
	r.jobs.WithLabelValues("refused").Add(float64(e.Refused - e.Parked))
	r.jobs.WithLabelValues("parked").Add(float64(e.Parked))
}

// backlog are the gauges of what a relay has before it.
type backlog struct{ jobs, oldest *prometheus.GaugeVec }

func (m *metrics) backlog() backlog {
	b := backlog{
		jobs: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "caisson_outbox_pending_jobs", Help: "Jobs in the outbox that are not published yet.",
		}, []string{"state"}),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "caisson_outbox_oldest_seconds", Help: "Age of the oldest job in the outbox that is not published yet.",
		}, nil),
	}
	m.registry.MustRegister(b.jobs, b.oldest)
	return b
}

// clear shows nothing.
func (b backlog) clear() {
	b.jobs.Reset()
	b.oldest.Reset()
}

func (b backlog) set(s outbox.Stats) {
	b.jobs.WithLabelValues("fresh").Set(float64(s.Fresh))
	b.jobs.WithLabelValues("waiting").Set(float64(s.Waiting))
	b.jobs.WithLabelValues("stuck").Set(float64(s.Stuck))
	b.oldest.WithLabelValues().Set(s.Oldest.Seconds())
}
