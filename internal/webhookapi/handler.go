package webhookapi

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/ordering"
)

// Config is that of package webhook/api, which says what its fields mean, and the fleet's status store besides.
type Config struct {
	Registry    *endpoints.Registry
	Guard       *webhook.Guard
	Publisher   *webhook.Publisher
	Journal     journal.Store
	Recovery    *journal.Recovery
	Sender      *webhook.Sender
	Queues      ordering.Queues
	Letters     dlq.Store
	StatusStore fleet.StatusStore // nil leaves out what breakers are doing
	MaxEvent    int
	MaxTimeout  time.Duration
	Logger      *slog.Logger
}

// DefaultMaxEvent is the most bytes of an event's payload unless the configuration says otherwise.
const DefaultMaxEvent = 1 << 20

func (c Config) withDefaults() Config {
	if c.MaxEvent == 0 {
		c.MaxEvent = DefaultMaxEvent
	}
	if c.MaxTimeout == 0 {
		c.MaxTimeout = webhook.Timeouts{}.WithDefaults().Total
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Registry == nil, c.Publisher == nil, c.Journal == nil, c.Recovery == nil, c.Sender == nil:
		return errors.New("webhook api: registry, publisher, journal, recovery and sender are required")
	case c.MaxTimeout < 0:
		return errors.New("webhook api: max timeout must not be negative; 0 means the default")
	case c.MaxEvent < 0:
		return errors.New("webhook api: max event must not be negative; 0 means 1 MiB")
	}
	return nil
}

// api answers requests.
type api struct {
	cfg Config
}

// New returns the handler of all paths under /v1/.
func New(cfg Config) (http.Handler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	a := &api{cfg: cfg}
	mux := http.NewServeMux()
	for pattern, answer := range a.routes() {
		mux.Handle(pattern, a.answering(answer))
	}
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		write(w, crossSite)
	}))
	return guard.Handler(orProblem(mux)), nil
}

// routes are all that there is. openapi.yaml has the same.
func (a *api) routes() map[string]answer {
	return map[string]answer{
		"GET /v1/openapi.yaml": a.description,

		"GET /v1/endpoints":         a.listEndpoints,
		"POST /v1/endpoints":        a.createEndpoint,
		"GET /v1/endpoints/{id}":    a.getEndpoint,
		"PATCH /v1/endpoints/{id}":  a.patchEndpoint,
		"DELETE /v1/endpoints/{id}": a.deleteEndpoint,

		"POST /v1/endpoints/{id}/pause":         a.pauseEndpoint,
		"POST /v1/endpoints/{id}/enable":        a.enableEndpoint,
		"POST /v1/endpoints/{id}/disable":       a.disableEndpoint,
		"POST /v1/endpoints/{id}/rotate-secret": a.rotateSecret,
		"POST /v1/endpoints/{id}/test":          a.testEndpoint,
		"POST /v1/endpoints/{id}/resend":        a.resend,
		"POST /v1/endpoints/{id}/recover":       a.recoverSince,
		"GET /v1/endpoints/{id}/attempts":       a.listAttempts,
		"GET /v1/endpoints/{id}/health":         a.health,

		"GET /v1/events":      a.listEvents,
		"POST /v1/events":     a.publish,
		"GET /v1/events/{id}": a.getEvent,
	}
}

// answer does what a request asks for. It writes the answer itself, or returns why there is none and has written nothing.
type answer func(w http.ResponseWriter, r *http.Request) error

// answering turns errors into problems.
func (a *api) answering(do answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := do(w, r)
		if err == nil {
			return
		}
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
			a.cfg.Logger.Warn("webhook api: a request failed", "method", r.Method, "route", r.Pattern, "status", p.Status, "error", err)
		}
		write(w, p)
	})
}

// orProblem makes problems of what the mux itself refuses, which would be plain text.
func orProblem(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := &refusal{header: make(http.Header), status: http.StatusNotFound}
		h.ServeHTTP(refused, r)
		if refused.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", refused.header.Get("Allow"))
			write(w, wrongMethod)
			return
		}
		write(w, noSuchPath)
	})
}

// refusal takes what the mux says about a request that no route is for.
type refusal struct {
	header http.Header
	status int
}

func (r *refusal) Header() http.Header         { return r.header }
func (r *refusal) Write(p []byte) (int, error) { return len(p), nil }
func (r *refusal) WriteHeader(status int)      { r.status = status }
