package reference

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/worker/prom"
)

// described is what a collector says of one of its metrics.
type described struct {
	name, help string
	labels     []string
}

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)",(?: unit: "[^"]*",)? constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

// describe asks a collector for its metrics, and sorts them by name.
func describe(c prometheus.Collector) ([]described, error) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		c.Describe(descriptions)
	}()
	var list []described
	var wrong error
	for d := range descriptions {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			wrong = fmt.Errorf("a description was not understood: %s", d)
			continue
		}
		list = append(list, described{m[1], strings.ReplaceAll(m[2], `\"`, `"`), strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' })})
	}
	slices.SortFunc(list, func(a, b described) int { return strings.Compare(a.name, b.name) })
	return list, wrong
}

// histograms are the metrics that are neither counters, which end in _total, nor gauges. The tests of package prom hold the types of the page
// against those that are exported.
var histograms = map[string]bool{"caisson_job_handle_seconds": true, "caisson_job_latency_seconds": true}

func (d described) kind() string {
	switch {
	case histograms[d.name]:
		return "histogram"
	case strings.HasSuffix(d.name, "_total"):
		return "counter"
	}
	return "gauge"
}

func metricRows(list []described) string {
	var b strings.Builder
	b.WriteString("\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range list {
		labels := ""
		if len(d.labels) > 0 {
			labels = "`" + strings.Join(d.labels, "`, `") + "` "
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s| %s |\n", d.name, d.kind(), labels, cell(d.help))
	}
	b.WriteString("\n")
	return b.String()
}

// workerMetrics are those of package prom.
func workerMetrics() (string, error) {
	observer, err := prom.New(prom.Config{Registerer: prometheus.NewRegistry()})
	if err != nil {
		return "", err
	}
	list, err := describe(observer)
	return metricRows(list), err
}

// webhookMetrics are those of a program that delivers webhooks.
func webhookMetrics() (string, error) {
	list, err := describe(webhooks.NewMetrics())
	return metricRows(list), err
}
