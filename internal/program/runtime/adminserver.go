package runtime

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/caisson-go/caisson/internal/program/admin"
	"github.com/caisson-go/caisson/internal/program/config"
)

// listen opens the admin server, or returns nil if it is off. Several workers on one host all have the default address: where nobody chose
// it, being second is no reason not to work.
func (r *Runtime) listen(ctx context.Context) (*admin.Server, error) {
	if r.cfg.Admin.Addr == config.Off {
		return nil, nil
	}
	server, err := admin.New(ctx, admin.Config{
		Addr:     r.cfg.Admin.Addr,
		User:     r.cfg.Admin.User,
		Password: r.cfg.Admin.Password.Reveal(),
		Checks:   []admin.Check{{Name: "worker", Probe: r.Ready}},
		Metrics:  r.metrics.handler(),
		API:      &r.api,
	})
	if err == nil {
		return server, nil
	}
	for _, s := range r.cfg.Settings() {
		if s.Key == "admin.addr" && s.Origin == config.Default {
			r.logger.Warn("no admin server: set admin.addr to a free address, or to off", "error", err)
			return nil, nil
		}
	}
	return nil, fmt.Errorf("admin.addr: %w", err)
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
