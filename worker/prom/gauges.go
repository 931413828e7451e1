package prom

import (
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/queue/inspect"
)

// brokerGauges shows the figures that a driver has of its own. Their names are the driver's, so that nothing can be said of them before it
// is asked: the collector describes nothing, and is not checked.
type brokerGauges struct {
	o    *Observer
	from inspect.Gauges
}

const brokerPrefix = "caisson_broker_"

// maxGauges is the most figures of one driver that are shown. Names come from a fixed set; one that does not would fill the store of metrics.
const maxGauges = 50

var gaugeName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,59}$`)

// Describe implements [prometheus.Collector].
func (brokerGauges) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector]. It asks nobody. Queues beyond the limit add up.
func (b brokerGauges) Collect(ch chan<- prometheus.Metric) {
	type key struct{ name, queue string }
	help, values := make(map[string]string), make(map[key]float64)
	for _, g := range b.from.Gauges() {
		if _, known := help[g.Name]; !known {
			if len(help) == maxGauges || !gaugeName.MatchString(g.Name) {
				continue
			}
			help[g.Name] = g.Help
		}
		k := key{g.Name, g.Queue}
		if k.queue != "" {
			k.queue = b.o.queues.fold(k.queue)
		}
		values[k] += g.Value
	}
	for k, value := range values {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(k.name, "_total") {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(brokerPrefix+k.name, help[k.name]+".", []string{"queue"}, nil)
		ch <- prometheus.MustNewConstMetric(desc, kind, value, k.queue)
	}
}
