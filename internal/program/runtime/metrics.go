package runtime

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/worker/prom"
)

// metrics is what /metrics shows: the process, and the worker with its broker and stores once they are open.
type metrics struct {
	registry *prometheus.Registry
	sweeps   *prometheus.CounterVec
	webhooks *webhooks.Metrics
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), sweeps: newSweeps(), webhooks: webhooks.NewMetrics()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observer returns the observer of a worker on set. Attach the worker once there is one.
func (m *metrics) observer(cfg *config.Config, set *backends.Set) (*prom.Observer, error) {
	m.ofStore(set)
	// Destinations that an operator has named are few and known; endpoints are customers', and count together.
	named := slices.Sorted(maps.Keys(cfg.Destinations.Overrides))
	o, err := prom.New(prom.Config{
		Registerer:   m.registry,
		Destinations: named[:min(len(named), prom.MaxDestinations)],
		Broker:       set.Broker,
		DeadLetters:  set.Letters,
		Store:        set.Claims,

		DeadLetterQueues: cfg.Networked() && set.Mirror == nil, // which would count each dead letter twice
	})
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return o, nil
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
