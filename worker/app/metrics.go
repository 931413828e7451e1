package app

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/caisson-go/caisson/internal/config"
	"github.com/caisson-go/caisson/internal/stack"
	"github.com/caisson-go/caisson/worker/prom"
)

// metrics is what /metrics shows: the worker, its broker and stores, and the process.
type metrics struct {
	registry *prometheus.Registry
	observer *prom.Observer
}

// newMetrics returns the metrics of a worker on s. Attach the worker once there is one.
func newMetrics(cfg *config.Config, s *stack.Stack) (*metrics, error) {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// Destinations that an operator has named are few and known; endpoints are customers', and count together.
	named := slices.Sorted(maps.Keys(cfg.Destinations.Overrides))
	var err error
	m.observer, err = prom.New(prom.Config{
		Registerer:   m.registry,
		Destinations: named[:min(len(named), prom.MaxDestinations)],
		Broker:       s.Broker,
		DeadLetters:  s.DeadLetters,
		Store:        s.Claims,
	})
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return m, nil
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
