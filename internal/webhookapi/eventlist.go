package webhookapi

import (
	"net/http"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

// EventPage is a page of events without their bodies, oldest first. Next is what after is for the next page, "" on the last.
type EventPage struct {
	Events []webhook.Event `json:"events"`
	Next   string          `json:"next,omitempty"`
}

func (a *api) listEvents(w http.ResponseWriter, r *http.Request) error {
	q := query(r, "tenant", "type", "from", "to", "after", "limit")
	f := journal.EventFilter{Tenant: q.text("tenant"), Type: q.text("type"), From: q.time("from"), To: q.time("to"), WithoutBodies: true}
	limit := q.limit()
	if f.Tenant == "" {
		f.Tenant = webhook.DefaultTenant
	}
	if err := f.Check(); err != nil {
		q.fault("type", err.Error())
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.To.After(f.From) {
		q.fault("to", "must be after from")
	}
	if err := q.err(); err != nil {
		return err
	}
	found, next, err := a.cfg.Journal.Events(r.Context(), f, q.text("after"), limit)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, ShowEvents(found, next))
}

// ShowEvents returns a page in the form of the API.
func ShowEvents(found []webhook.Event, next string) EventPage {
	if found == nil {
		found = []webhook.Event{}
	}
	return EventPage{found, next}
}
