package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
)

// Delivery is what registry and journal know of an event's delivery to one endpoint.
type Delivery struct {
	Endpoint string `json:"endpoint"`
	// Job is the id of the delivery, if publishing the event made it.
	Job string `json:"job"`
	// State of the delivery, as far as it is known: [Settings.SetStates] sets it.
	State DeliveryState `json:"state,omitempty"`
	// EndpointState is "" for an endpoint that is not known any more, and Reason is why it is not active.
	EndpointState string `json:"endpoint_state,omitempty"`
	Reason        string `json:"reason,omitempty"`
	// Since is when the endpoint's state was set.
	Since time.Time `json:"since,omitzero"`
	// Wanted says that the endpoint wants events of that type now.
	Wanted bool `json:"wanted"`
	// AddedLater says that the endpoint was not there when the event was published.
	AddedLater bool `json:"added_later,omitempty"`
	// Ordered says that the endpoint asks for order: a delivery that waits behind others has no job yet.
	Ordered bool `json:"ordered,omitempty"`
	// Attempts are the calls that are logged.
	Attempts int `json:"attempts"`
	// Last is the newest of them.
	Last *journal.Attempt `json:"last,omitempty"`
	// Delivered is when the receiver first took it.
	Delivered time.Time `json:"delivered_at,omitzero"`
	// Position is where it is in the ordered queue of its endpoint; nil if it is in none.
	Position *QueuePosition `json:"ordered_queue,omitempty"`
}

// QueuePosition is the place of a delivery in the ordered queue of an endpoint.
type QueuePosition struct {
	// Place is 1 for the head, which alone has a job.
	Place int `json:"place"`
	// Head is the event of the head, and Since when it became that.
	Head  string    `json:"head"`
	Since time.Time `json:"since"`
}

// NotMade says that publishing the event made no delivery for the endpoint, as far as can be told: it was gone then, or was not there.
func (f Delivery) NotMade(e webhook.Event) bool {
	return f.Attempts == 0 && f.Position == nil && (f.AddedLater || f.gone() && !f.Since.After(e.At))
}

// gone says that the endpoint is. What is published meanwhile is not for it.
func (f Delivery) gone() bool {
	return webhook.Endpoint{State: webhook.State(f.EndpointState), Reason: f.Reason}.Gone()
}

// deliveriesPage is how many endpoints, or calls, are read at once.
const deliveriesPage = 500

// Deliveries returns what became of an event at the endpoints that want it and those that were called for it, by id. Without a registry, and in the part of it that
// cannot be read, calls tell alone.
func (s *Settings) Deliveries(ctx context.Context, open *backends.Set, e webhook.Event) ([]Delivery, error) {
	byID := make(map[string]*Delivery)
	static, err := s.static.Matching(e.Tenant, e.Type)
	if err != nil {
		return nil, err
	}
	for _, endpoint := range static {
		byID[endpoint.ID] = &Delivery{Endpoint: endpoint.ID, EndpointState: string(webhook.StateActive), Wanted: true}
	}
	if err := s.wanted(ctx, open.Endpoints, e, byID); err != nil {
		return nil, err
	}
	if err := called(ctx, open.Journal, e, byID); err != nil {
		return nil, err
	}
	deliveries := make([]Delivery, 0, len(byID))
	for id, f := range byID {
		f.Job = e.JobID(id)
		deliveries = append(deliveries, *f)
	}
	slices.SortFunc(deliveries, func(a, b Delivery) int { return strings.Compare(a.Endpoint, b.Endpoint) })
	return deliveries, nil
}

// wanted notes the endpoints of the registry that want an event. One that the file has, too, is the registry's.
func (s *Settings) wanted(ctx context.Context, store endpoints.Store, e webhook.Event, byID map[string]*Delivery) error {
	if s.keys == nil || store == nil {
		return nil
	}
	registry, err := s.Registry(store)
	if err != nil {
		return err
	}
	for after := ""; ; {
		page, err := registry.List(ctx, endpoints.Filter{Tenant: e.Tenant}, after, deliveriesPage)
		if err != nil && page == nil {
			return err
		}
		for _, entry := range page {
			after = entry.ID
			delete(byID, entry.ID)
			if entry.Wants(e.Type) {
				byID[entry.ID] = &Delivery{
					Endpoint: entry.ID, EndpointState: string(entry.State), Reason: entry.Reason, Since: entry.Since.UTC(), Wanted: true, Ordered: entry.Ordered,
					AddedLater: entry.Created.After(e.At),
				}
			}
		}
		if len(page) < deliveriesPage {
			return nil
		}
	}
}

// called notes the calls for an event.
func called(ctx context.Context, store journal.Store, e webhook.Event, byID map[string]*Delivery) error {
	for after, more := "", true; more; more = after != "" {
		page, next, err := store.Attempts(ctx, journal.AttemptFilter{Tenant: e.Tenant, Event: e.ID}, after, deliveriesPage)
		if err != nil {
			return fmt.Errorf("calls for event %s: %w", e.ID, err)
		}
		for _, a := range page { // newest first
			f := byID[a.Endpoint]
			if f == nil {
				f = &Delivery{Endpoint: a.Endpoint}
				byID[a.Endpoint] = f
			}
			if f.Attempts++; f.Last == nil {
				f.Last = &a
			}
			if a.Succeeded() {
				f.Delivered = a.At
			}
		}
		after = next
	}
	return nil
}
