package webhook

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/net/http/httpguts"

	"github.com/caisson-go/caisson/webhook/internal/deliver"
	"github.com/caisson-go/caisson/webhook/internal/match"
	"github.com/caisson-go/caisson/webhook/signature"
)

// Event is something that happened, for all endpoints of a tenant that want to hear of its type.
type Event struct {
	// ID is the webhook-id of its deliveries: printable ASCII without dots, at most 200 bytes. Empty makes one. Publishing an id twice delivers it
	// once to each endpoint.
	ID string `json:"id"`
	// Tenant whose endpoints get it. Empty means "default".
	Tenant string `json:"tenant"`
	// Type is matched with the endpoints' patterns, for example "invoice.paid". Required; 1 to 128 letters, digits, '.', '-' and '_'.
	Type string `json:"type"`
	// Body is what receivers get, byte for byte.
	Body []byte `json:"-"`
	// ContentType of the body. Empty means application/json.
	ContentType string `json:"content_type,omitempty"`
	// At is when it was published, by the journal's clock. Set by the journal.
	At time.Time `json:"at,omitzero"`
}

// Subscribers finds who wants an event. It is asked at each publishing and must be quick and safe for concurrent use.
type Subscribers interface {
	// Matching returns the endpoints of the tenant, whatever their state, whose patterns match the event type, sorted by id.
	Matching(tenant, eventType string) ([]Endpoint, error)
}

// Checked returns e as it is published, with its defaults and an id, or an error that wraps [ErrInvalidEvent].
func (e Event) Checked() (Event, error) {
	if e.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return e, fmt.Errorf("make an event id: %w", err)
		}
		e.ID = id.String()
	}
	if e.Tenant == "" {
		e.Tenant = DefaultTenant
	}
	if e.ContentType == "" {
		e.ContentType = defaultContentType
	}
	for _, err := range []error{signature.CheckID(e.ID), checkTenant(e.Tenant), match.CheckType(e.Type), checkContentType(e.ContentType)} {
		if err != nil {
			return e, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
		}
	}
	return e, nil
}

const maxContentType = 256

func checkContentType(value string) error {
	if len(value) > maxContentType || !httpguts.ValidHeaderFieldValue(value) || !utf8.ValidString(value) {
		return fmt.Errorf("content type %q: use a media type of at most %d bytes, such as %s", value[:min(len(value), maxContentType)], maxContentType, defaultContentType)
	}
	return nil
}

// JobID is the id of the job that delivers the event to an endpoint: "endpoint:event" for the default tenant, "endpoint:event.tenant" for others.
// Where that is too long for a job, it is "endpoint:" and a hash.
func (e Event) JobID(endpointID string) string { return deliver.ID(e.Tenant, endpointID, e.ID) }

func (e Event) delivered() deliver.Event {
	return deliver.Event{ID: e.ID, Tenant: e.Tenant, ContentType: e.ContentType, Body: e.Body}
}
