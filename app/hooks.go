package app

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/caisson-go/caisson/internal/program/admin"
	"github.com/caisson-go/caisson/internal/program/stack"
	"github.com/caisson-go/caisson/internal/program/webhooks"
)

// openWebhooks connects webhook deliveries with the store, and has the API answer. Without a registry there is nothing to run: nil.
func (s *site) openWebhooks(p *prepared, open *stack.Stack, logger *slog.Logger) (*webhooks.Running, error) {
	if p.deliveries == nil || !s.cfg.HasRegistry() {
		return nil, nil
	}
	hooks, err := p.deliveries.Open(webhooks.Place{
		Stack: open, Kinds: p.registry.Kinds(), Queue: s.cfg.UsualQueue(), Breaker: breakerOf(s.cfg.Webhook.Breaker),
		Metrics: s.metrics.webhooks, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	s.metrics.registry.MustRegister(s.metrics.webhooks)
	s.api.handler.Store(&hooks.API)
	return hooks, nil
}

// lateAPI is the API of an admin server that is there before what the API needs.
type lateAPI struct {
	// registry says that there will be one.
	registry bool
	handler  atomic.Pointer[http.Handler]
}

// ServeHTTP implements [http.Handler].
func (a *lateAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := a.handler.Load()
	switch {
	case handler != nil:
		(*handler).ServeHTTP(w, r)
	case a.registry:
		w.Header().Set("Retry-After", "2")
		admin.Problem(w, http.StatusServiceUnavailable, "unavailable", "the worker is not ready yet: see /readyz")
	default:
		admin.Problem(w, http.StatusNotFound, "no-registry", "there is no API here: it is that of the registry of webhook endpoints, which needs a store and webhook.secret_key")
	}
}
