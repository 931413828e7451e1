package webhookapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

// Headers of an event whose payload is the request's body as it is.
const (
	headerEventType   = "Caisson-Event-Type"
	headerEventID     = "Caisson-Event-Id"
	headerEventTenant = "Caisson-Event-Tenant"
)

// envelopeRoom is how much longer than its payload an event in JSON may be, in bytes.
const envelopeRoom = 4 << 10

func (a *api) publish(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(query(r).err(), unconditional(r)); err != nil {
		return err
	}
	event, err := a.readEvent(w, r)
	var p *Problem
	if errors.As(err, &p) && p.Status == http.StatusRequestEntityTooLarge {
		return newProblem(p.Status, "too-large", "Payload too large",
			fmt.Sprintf("a payload has at most %d bytes here: raise webhook.max_event, if the broker takes more", a.cfg.MaxEvent))
	}
	if err != nil {
		return err
	}
	if err := checkEvent(event); err != nil {
		return err
	}
	published, err := a.cfg.Publisher.Publish(r.Context(), event)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/events/"+url.PathEscape(published.ID))
	return reply(w, http.StatusAccepted, published)
}

// readEvent reads an event in one of its two forms: a JSON object around the payload, or the payload as it is and the rest in headers.
func (a *api) readEvent(w http.ResponseWriter, r *http.Request) (webhook.Event, error) {
	limit := int64(a.cfg.MaxEvent)
	if r.Header.Get(headerEventType) != "" {
		body, err := readBody(w, r, limit)
		return webhook.Event{
			ID: r.Header.Get(headerEventID), Tenant: r.Header.Get(headerEventTenant), Type: r.Header.Get(headerEventType),
			Body: body, ContentType: r.Header.Get("Content-Type"),
		}, err
	}
	if _, err := mediaType(r, contentJSON); err != nil {
		var p *Problem
		if errors.As(err, &p) {
			p.Detail += "; or send the payload as it is, with " + headerEventType
		}
		return webhook.Event{}, err
	}
	text, err := readBody(w, r, limit+envelopeRoom)
	if err != nil {
		return webhook.Event{}, err
	}
	o, err := parseObject(text)
	if err != nil {
		return webhook.Event{}, err
	}
	e := webhook.Event{}
	var payload json.RawMessage
	err = o.read(map[string]reader{
		"id":      into(&e.ID),
		"tenant":  into(&e.Tenant),
		"type":    into(&e.Type),
		"payload": func(value json.RawMessage) error { payload = value; return nil },
	})
	switch {
	case err != nil:
		return e, err
	case payload == nil:
		return e, invalid("payload", "is missing: give what receivers are to get, any JSON")
	case len(payload) > a.cfg.MaxEvent:
		return e, bodyTooLarge(limit)
	}
	e.Body = payload
	return e, nil
}

// checkEvent refuses what could never be published.
func checkEvent(e webhook.Event) error {
	_, err := e.Checked()
	if !errors.Is(err, webhook.ErrInvalidEvent) {
		return err
	}
	why := strings.TrimPrefix(err.Error(), webhook.ErrInvalidEvent.Error()+": ")
	return invalid(eventField(why), why)
}

// eventField names the field that a fault is about.
func eventField(fault string) string {
	for beginning, field := range map[string]string{"event id": "id", "event type": "type", "tenant": "tenant", "content type": "Content-Type"} {
		if strings.HasPrefix(fault, beginning) {
			return field
		}
	}
	return ""
}

// eventView is an event with the log of its deliveries.
type eventView struct {
	ID          string    `json:"id"`
	Tenant      string    `json:"tenant"`
	Type        string    `json:"type"`
	ContentType string    `json:"content_type"`
	At          time.Time `json:"at"`
	// Payload is base64: JSON within JSON would not stay the same byte for byte.
	Payload []byte `json:"payload_base64"`
	// Attempts are the newest, of all endpoints.
	Attempts []journal.Attempt `json:"attempts"`
	Next     string            `json:"next,omitempty"`
}

func (a *api) getEvent(w http.ResponseWriter, r *http.Request) error {
	q := query(r, "tenant", "after", "limit")
	tenant, limit := q.text("tenant"), q.limit()
	if err := q.err(); err != nil {
		return err
	}
	if tenant == "" {
		tenant = webhook.DefaultTenant
	}
	id := r.PathValue("id")
	e, err := a.cfg.Journal.Event(r.Context(), tenant, id)
	if err != nil {
		return err
	}
	attempts, next, err := a.cfg.Journal.Attempts(r.Context(), journal.AttemptFilter{Tenant: tenant, Event: id}, q.text("after"), limit)
	if err != nil {
		return err
	}
	v := eventView{ID: e.ID, Tenant: e.Tenant, Type: e.Type, ContentType: e.ContentType, At: e.At.UTC(), Payload: e.Body, Attempts: attempts, Next: next}
	if v.ContentType == "" {
		v.ContentType = contentJSON
	}
	if v.Payload == nil {
		v.Payload = []byte{}
	}
	if v.Attempts == nil {
		v.Attempts = []journal.Attempt{}
	}
	return reply(w, http.StatusOK, v)
}
