package webhooks

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/webhook"
)

// Metrics counts endpoints, events and attempts. No label holds an endpoint's id, a tenant or a type of events: states and reasons are few.
type Metrics struct {
	disabledTotal, published *prometheus.CounterVec
	deliveries               prometheus.Counter

	mu      sync.Mutex
	state   map[string]webhook.State // by id
	service *Service
}

var (
	metricEndpoints = prometheus.NewDesc("caisson_webhook_endpoints", "Endpoints of the registry.", []string{"state"}, nil)
	metricFrozen    = prometheus.NewDesc("caisson_webhook_disabling_frozen", "1 while no endpoint is disabled for failures, since most of them fail at once.", nil, nil)
	metricAttempts  = prometheus.NewDesc("caisson_webhook_attempts_total", "Calls to endpoints by what became of their line in the log.", []string{"log"}, nil)
)

// reasons that have a label value of their own.
var reasons = []string{webhook.ReasonGone, webhook.ReasonFailing}

// NewMetrics returns metrics that are registered nowhere yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		disabledTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "caisson_webhook_endpoints_disabled_total", Help: "Endpoints that this worker disabled.",
		}, []string{"reason"}),
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "caisson_webhook_events_published_total", Help: "Events that this worker published, through its API or in its handlers, by whether any endpoint wanted them.",
		}, []string{"wanted"}),
		deliveries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "caisson_webhook_deliveries_published_total", Help: "Deliveries that they made.",
		}),
		state: make(map[string]webhook.State),
	}
	for _, reason := range reasons {
		m.disabledTotal.WithLabelValues(reason)
	}
	for _, wanted := range []string{"yes", "no"} {
		m.published.WithLabelValues(wanted)
	}
	return m
}

func (m *Metrics) attach(r *Service) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.service = r
}

// changed follows the registry.
func (m *Metrics) changed(e webhook.Endpoint, deleted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if deleted {
		delete(m.state, e.ID)
		return
	}
	m.state[e.ID] = e.State
}

func (m *Metrics) disabled(e webhook.Endpoint) {
	reason := "other"
	for _, known := range reasons {
		if e.Reason == known {
			reason = known
		}
	}
	m.disabledTotal.WithLabelValues(reason).Inc()
}

func (m *Metrics) publish(p webhook.Published) {
	wanted := "no"
	if p.Endpoints > 0 {
		wanted = "yes"
	}
	m.published.WithLabelValues(wanted).Inc()
	m.deliveries.Add(float64(p.Endpoints))
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.disabledTotal.Describe(ch)
	m.published.Describe(ch)
	m.deliveries.Describe(ch)
	ch <- metricEndpoints
	ch <- metricFrozen
	ch <- metricAttempts
}

// Collect implements [prometheus.Collector]. It makes no calls. The registry's figures are absent until it is loaded.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.disabledTotal.Collect(ch)
	m.published.Collect(ch)
	m.deliveries.Collect(ch)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.service == nil || !m.service.loaded() {
		return
	}
	counts := map[webhook.State]int{webhook.StateActive: 0, webhook.StatePaused: 0, webhook.StateDisabled: 0}
	for _, state := range m.state {
		counts[state]++
	}
	for state, n := range counts {
		ch <- prometheus.MustNewConstMetric(metricEndpoints, prometheus.GaugeValue, float64(n), string(state))
	}
	ch <- prometheus.MustNewConstMetric(metricEndpoints, prometheus.GaugeValue, float64(m.service.mirror.Unreadable()), "unreadable")
	frozen := 0.0
	if m.service.disabler.Frozen() {
		frozen = 1
	}
	ch <- prometheus.MustNewConstMetric(metricFrozen, prometheus.GaugeValue, frozen)
	ch <- prometheus.MustNewConstMetric(metricAttempts, prometheus.CounterValue, float64(m.service.recorder.Written()), "written")
	ch <- prometheus.MustNewConstMetric(metricAttempts, prometheus.CounterValue, float64(m.service.recorder.Dropped()), "dropped")
}
