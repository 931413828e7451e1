package api

import (
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/ordering"
)

// Config configures the API.
type Config struct {
	// Registry holds the endpoints. Required.
	Registry *endpoints.Registry
	// Guard decides which URLs are taken: the registry's. Nil means the default one.
	Guard *webhook.Guard
	// Publisher hands events to endpoints. Required.
	Publisher *webhook.Publisher
	// Journal has the events and the log of attempts. Required.
	Journal journal.Store
	// Recovery sends events again. Required.
	Recovery *journal.Recovery
	// Sender makes test deliveries. Required.
	Sender *webhook.Sender
	// Queues and Letters have more to tell of how an endpoint fares. Nil means that it is left out.
	Queues  ordering.Queues
	Letters dlq.Store
	// MaxEvent is the most bytes of an event's payload, at most what the broker takes. Zero means 1 MiB.
	MaxEvent int
	// MaxTimeout is the longest that an endpoint's timeout may be: the sender's total one. Zero means 26 s.
	MaxTimeout time.Duration
	// Logger gets errors that are not the caller's. Nil means slog.Default().
	Logger *slog.Logger
}

// New returns the handler of all paths under /v1/. It is safe for concurrent use. It refuses a Config that lacks what is required.
func New(cfg Config) (http.Handler, error) {
	return webhookapi.New(webhookapi.Config{
		Registry: cfg.Registry, Guard: cfg.Guard, Publisher: cfg.Publisher, Journal: cfg.Journal, Recovery: cfg.Recovery, Sender: cfg.Sender,
		Queues: cfg.Queues, Letters: cfg.Letters, MaxEvent: cfg.MaxEvent, MaxTimeout: cfg.MaxTimeout, Logger: cfg.Logger,
	})
}

// Description returns what the API takes and answers, in OpenAPI 3.1.
func Description() []byte { return slices.Clone(webhookapi.Description) }
