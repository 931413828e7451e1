package explain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// endpoint is the endpoint of a delivery, as workers know it.
type endpoint struct {
	ID string `json:"id"`
	// State is the endpoint's, or unknown, or unusable.
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Error is why it is unusable.
	Error string `json:"error,omitempty"`

	attempts int // of each delivery, by its own schedule; 0 where the kind's number holds
}

// States of a target beside those of an endpoint.
const (
	endpointUnknown  = "unknown"  // not in the registry
	endpointUnusable = "unusable" // it cannot be read, or must not be called
)

// findEndpoints looks up the endpoints of the deliveries among the jobs.
func (d *diagnosis) findEndpoints(ctx context.Context, cfg *config.Config, s *backends.Set) error {
	for _, id := range d.receivers() {
		if d.endpoints[id] != nil {
			continue
		}
		hooks, err := webhooks.Read(cfg)
		if err != nil || !hooks.Any() { // workers know endpoints that this program does not
			d.notes = append(d.notes, "webhook endpoints were not looked at: give the workers' webhook.secret_key")
			return nil //nolint:nilerr // the rest can be told
		}
		t, err := look(ctx, hooks, s.Endpoints, id)
		if err != nil {
			return err
		}
		if d.endpoints == nil {
			d.endpoints = make(map[string]*endpoint)
		}
		d.endpoints[t.ID] = t
	}
	return nil
}

// receivers are the endpoints of the deliveries that are told of.
func (d *diagnosis) receivers() []string {
	var ids []string
	for _, s := range d.matching() {
		if s.kind == webhook.KindDeliver && s.destination != "" {
			ids = append(ids, s.destination)
		}
	}
	for _, f := range d.deliveries {
		ids = append(ids, f.Endpoint)
	}
	return ids
}

func look(ctx context.Context, hooks *webhooks.Settings, store endpoints.Store, id string) (*endpoint, error) {
	e, err := hooks.Look(ctx, store, id)
	t := &endpoint{ID: id, State: string(e.State), Reason: e.Reason, Since: e.Since, attempts: e.Attempts()}
	switch {
	case errors.Is(err, webhook.ErrUnknownEndpoint):
		t.State = endpointUnknown
	case errors.Is(err, endpoints.ErrUnavailable), ctx.Err() != nil:
		return nil, fmt.Errorf("look into the registry of webhook endpoints: %w", err)
	case err != nil && e.State == webhook.StateActive: // one that is not active is held all the same
		t.State, t.Error = endpointUnusable, err.Error()
	case e.State == "":
		t.State = string(webhook.StateActive)
	}
	return t, nil
}

// endpointOf is the endpoint of a delivery; nil for other jobs, and if it was not looked at.
func (d *diagnosis) endpointOf(j *job) *endpoint {
	if j.kind != webhook.KindDeliver {
		return nil
	}
	return d.endpoints[j.destination]
}

// mostAttempts is how many attempts a run of the job has: by its endpoint's schedule, else by its kind as a live worker runs it. 0 if neither is known.
func (d *diagnosis) mostAttempts(j *job) int {
	if t := d.endpointOf(j); t != nil && t.attempts > 0 {
		return t.attempts
	}
	k, _ := d.kindOf(j)
	return k.MaxAttempts
}

// closed says why the endpoint of a delivery gets it not now, and the way out; "" if it does, and for other jobs.
func (d *diagnosis) closed(j *job) string {
	t := d.endpointOf(j)
	switch {
	case t == nil, t.State == string(webhook.StateActive):
		return ""
	case t.State == endpointUnknown:
		return fmt.Sprintf("its endpoint %s is not in the registry: the job becomes a dead letter %s", t.ID, d.givenUp(j))
	case t.State == endpointUnusable:
		return fmt.Sprintf("its endpoint cannot be used, and the job waits until it can: %s", headline(t.Error))
	case t.State == string(webhook.StateDisabled) && t.Reason == webhook.ReasonGone:
		return fmt.Sprintf("its endpoint %s, for which jobs become dead letters, until somebody runs %s endpoints enable %s", t, d.program, t.ID)
	}
	return fmt.Sprintf("its endpoint %s, until somebody runs %s endpoints enable %s", t, d.program, t.ID)
}

// givenUp is when workers give up a job whose endpoint they do not know.
func (d *diagnosis) givenUp(j *job) string {
	wait := webhook.Config{}.WithDefaults().UnknownEndpointAfter
	p := j.place()
	if p == nil {
		return "once it has waited for " + span(wait)
	}
	due := p.Envelope.EnqueuedAt
	if p.Envelope.NotBefore.After(due) {
		due = p.Envelope.NotBefore
	}
	if end := due.Add(wait); end.After(d.brokerNow) {
		return "at " + cli.Time(end)
	}
	return "when it is looked at next"
}

// String names the endpoint and its state.
func (t *endpoint) String() string {
	text := t.ID + " is " + t.State
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	if !t.Since.IsZero() {
		text += " since " + cli.Time(t.Since)
	}
	return text
}
