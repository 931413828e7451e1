package webhookapi

import (
	"errors"
	"net/http"
	"slices"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// endpointPage is a page of endpoints. Next is what after is for the next page, "" on the last.
type endpointPage struct {
	Endpoints []Endpoint `json:"endpoints"`
	Next      string     `json:"next,omitempty"`
}

var states = []webhook.State{webhook.StateActive, webhook.StatePaused, webhook.StateDisabled}

func (a *api) listEndpoints(w http.ResponseWriter, r *http.Request) error {
	q := query(r, "tenant", "state", "after", "limit")
	f := endpoints.Filter{Tenant: q.text("tenant"), State: webhook.State(q.text("state"))}
	if f.State != "" && !slices.Contains(states, f.State) {
		q.fault("state", "is unknown: use active, paused or disabled")
	}
	limit := q.limit()
	if err := q.err(); err != nil {
		return err
	}
	found, err := a.cfg.Registry.List(r.Context(), f, q.text("after"), limit+1)
	if err != nil {
		if found == nil {
			return err
		}
		a.cfg.Logger.Warn("webhook api: endpoints cannot be read", "error", err) // the others are shown, and these as unreadable
	}
	page := endpointPage{Endpoints: []Endpoint{}}
	if len(found) > limit {
		found = found[:limit]
		page.Next = found[limit-1].ID
	}
	for _, e := range found {
		page.Endpoints = append(page.Endpoints, Show(e))
	}
	return reply(w, http.StatusOK, page)
}

func (a *api) createEndpoint(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(query(r).err(), unconditional(r)); err != nil {
		return err
	}
	o, err := bodyObject(w, r)
	if err != nil {
		return err
	}
	e, err := o.endpoint()
	if err != nil {
		return err
	}
	if err := Check(a.cfg.Guard, a.cfg.MaxTimeout, e); err != nil {
		return err
	}
	made, err := a.cfg.Registry.Add(r.Context(), e)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/endpoints/"+made.ID)
	w.Header().Set("ETag", etag(made.Revision))
	return reply(w, http.StatusCreated, ShowNew(made))
}

func (a *api) getEndpoint(w http.ResponseWriter, r *http.Request) error {
	if err := query(r).err(); err != nil {
		return err
	}
	e, err := a.cfg.Registry.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return replyEndpoint(w, e)
}

func (a *api) patchEndpoint(w http.ResponseWriter, r *http.Request) error {
	if err := query(r).err(); err != nil {
		return err
	}
	rev, err := revision(r)
	if err != nil {
		return err
	}
	o, err := bodyObject(w, r, "application/merge-patch+json")
	if err != nil {
		return err
	}
	change, err := o.change()
	if err != nil {
		return err
	}
	e, err := a.cfg.Registry.Edit(r.Context(), r.PathValue("id"), rev, func(e *webhook.Endpoint) error {
		if err := change.Apply(e); err != nil {
			return err
		}
		return Check(a.cfg.Guard, a.cfg.MaxTimeout, *e)
	})
	if err != nil {
		return err
	}
	return replyEndpoint(w, e)
}

func (a *api) deleteEndpoint(w http.ResponseWriter, r *http.Request) error {
	if err := query(r).err(); err != nil {
		return err
	}
	rev, err := revision(r)
	if err != nil {
		return err
	}
	if err := a.cfg.Registry.Delete(r.Context(), r.PathValue("id"), rev); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func replyEndpoint(w http.ResponseWriter, e endpoints.Entry) error {
	w.Header().Set("ETag", etag(e.Revision))
	return reply(w, http.StatusOK, Show(e))
}
