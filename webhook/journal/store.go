package journal

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/internal/match"
)

// Errors of stores.
var (
	// ErrUnavailable means that the store could not be asked. The call may be repeated.
	ErrUnavailable = errors.New("webhook journal is unavailable")
	// ErrCursor means that a cursor does not come from this store's lists.
	ErrCursor = errors.New("webhook journal: not a cursor of this list")
)

// Attempt is one call to an endpoint.
type Attempt struct {
	// Tenant is the endpoint's.
	Tenant   string `json:"tenant"`
	Endpoint string `json:"endpoint"`
	Event    string `json:"event"`
	Job      string `json:"job"`
	// Number of the job's attempt, counted from 1.
	Number int `json:"attempt"`
	// At is when the call ended.
	At time.Time `json:"at"`
	// Status is the HTTP status; 0 if no response came.
	Status int `json:"status"`
	// Phase is how far the call got, as [webhook.Phase] spells it.
	Phase string `json:"phase"`
	// Duration of the call, body included.
	Duration time.Duration `json:"duration_ns"`
	// Excerpt is the beginning of the response as one cleaned line.
	Excerpt string `json:"excerpt,omitempty"`
	// Error is why no response came.
	Error string `json:"error,omitempty"`
	// RequestID is what the receiver calls the request (x-request-id or the like), for its support; cleaned, at most 128 bytes.
	RequestID string `json:"request_id,omitempty"`
	// Resent says that a dead connection made a second call necessary.
	Resent bool `json:"resent,omitempty"`
	// CutOff says that our own stop, or the end of the job's time, ended the call.
	CutOff bool `json:"cut_off,omitempty"`
}

// Succeeded reports whether the receiver took it.
func (a Attempt) Succeeded() bool { return a.Status >= 200 && a.Status < 300 }

// AttemptFilter selects attempts. Zero fields select all.
type AttemptFilter struct {
	Tenant, Endpoint, Event string
	// From and To bound At: from From on, and before To.
	From, To time.Time
	// Failed selects only those that did not succeed.
	Failed bool
}

// EventFilter selects events. Zero fields but Tenant select all.
type EventFilter struct {
	Tenant string
	// Type is a pattern: see [webhook.Endpoint].Events.
	Type     string
	From, To time.Time
	// WithoutBodies leaves the bodies out, of which a page may hold a GiB.
	WithoutBodies bool
}

// Check says what is wrong with the filter's type.
func (f EventFilter) Check() error {
	if f.Type == "" {
		return nil
	}
	return match.CheckPattern(f.Type)
}

// Store keeps events and attempts. Package internal/testkit/journaltest holds the suite that every store passes. Implementations are safe for concurrent use;
// errors that may pass wrap [ErrUnavailable].
type Store interface {
	// PutEvent keeps an event. One of that tenant and id that is there already stays: [webhook.ErrEventConflict] if it is another one, else nil.
	PutEvent(ctx context.Context, e webhook.Event) error
	// Event returns one event with its body, or [webhook.ErrNoEvent].
	Event(ctx context.Context, tenant, id string) (webhook.Event, error)
	// Events returns at most limit events, with their bodies unless the filter leaves them out, oldest first. after is the cursor of the page before, "" for the first; next is
	// "" on the last page.
	Events(ctx context.Context, f EventFilter, after string, limit int) (events []webhook.Event, next string, err error)
	// Log keeps attempts. Repeating it after an error may keep some twice.
	Log(ctx context.Context, attempts []Attempt) error
	// Attempts returns at most limit attempts, newest first, in pages as Events.
	Attempts(ctx context.Context, f AttemptFilter, after string, limit int) (attempts []Attempt, next string, err error)
	// Tried returns those of the tenant's event ids of which an attempt at the endpoint is kept.
	Tried(ctx context.Context, tenant, endpoint string, events []string) (map[string]bool, error)
	// Expire drops events and attempts that are older than their retention, as far as the store drops whole parts only. It is called every
	// few minutes by every worker.
	Expire(ctx context.Context, events, attempts time.Duration) error
}
