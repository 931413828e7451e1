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

// target is the endpoint of a delivery, as workers know it.
type target struct {
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
	targetUnknown  = "unknown"  // not in the registry
	targetUnusable = "unusable" // it cannot be read, or must not be called
)

// findTargets looks up the endpoints of the deliveries among the jobs.
func (ev *evidence) findTargets(ctx context.Context, cfg *config.Config, s *backends.Set) error {
	for _, id := range ev.receivers() {
		if ev.targets[id] != nil {
			continue
		}
		hooks, err := webhooks.Read(cfg)
		if err != nil || !hooks.Any() { // workers know endpoints that this program does not
			ev.notes = append(ev.notes, "webhook endpoints were not looked at: give the workers' webhook.secret_key")
			return nil //nolint:nilerr // the rest can be told
		}
		t, err := look(ctx, hooks, s.Endpoints, id)
		if err != nil {
			return err
		}
		if ev.targets == nil {
			ev.targets = make(map[string]*target)
		}
		ev.targets[t.ID] = t
	}
	return nil
}

// receivers are the endpoints of the deliveries that are told of.
func (ev *evidence) receivers() []string {
	var ids []string
	for _, s := range ev.subjects() {
		if s.kind == webhook.KindDeliver && s.destination != "" {
			ids = append(ids, s.destination)
		}
	}
	for _, f := range ev.fates {
		ids = append(ids, f.Endpoint)
	}
	return ids
}

func look(ctx context.Context, hooks *webhooks.Settings, store endpoints.Store, id string) (*target, error) {
	e, err := hooks.Look(ctx, store, id)
	t := &target{ID: id, State: string(e.State), Reason: e.Reason, Since: e.Since, attempts: e.Attempts()}
	switch {
	case errors.Is(err, webhook.ErrUnknownEndpoint):
		t.State = targetUnknown
	case errors.Is(err, endpoints.ErrUnavailable), ctx.Err() != nil:
		return nil, fmt.Errorf("look into the registry of webhook endpoints: %w", err)
	case err != nil && e.State == webhook.StateActive: // one that is not active is held all the same
		t.State, t.Error = targetUnusable, err.Error()
	case e.State == "":
		t.State = string(webhook.StateActive)
	}
	return t, nil
}

// targetOf is the endpoint of a delivery; nil for other jobs, and if it was not looked at.
func (ev *evidence) targetOf(s *subject) *target {
	if s.kind != webhook.KindDeliver {
		return nil
	}
	return ev.targets[s.destination]
}

// mostAttempts is how many attempts a run of the job has: by its endpoint's schedule, else by its kind as a live worker runs it. 0 if neither is known.
func (ev *evidence) mostAttempts(s *subject) int {
	if t := ev.targetOf(s); t != nil && t.attempts > 0 {
		return t.attempts
	}
	k, _ := ev.kindOf(s)
	return k.MaxAttempts
}

// closed says why the endpoint of a delivery gets it not now, and the way out; "" if it does, and for other jobs.
func (ev *evidence) closed(s *subject) string {
	t := ev.targetOf(s)
	switch {
	case t == nil, t.State == string(webhook.StateActive):
		return ""
	case t.State == targetUnknown:
		return fmt.Sprintf("its endpoint %s is not in the registry: the job becomes a dead letter %s", t.ID, ev.patience(s))
	case t.State == targetUnusable:
		return fmt.Sprintf("its endpoint cannot be used, and the job waits until it can: %s", headline(t.Error))
	case t.State == string(webhook.StateDisabled) && t.Reason == webhook.ReasonGone:
		return fmt.Sprintf("its endpoint %s, for which jobs become dead letters, until somebody runs %s endpoints enable %s", t, ev.program, t.ID)
	}
	return fmt.Sprintf("its endpoint %s, until somebody runs %s endpoints enable %s", t, ev.program, t.ID)
}

// patience is when workers give up a job whose endpoint they do not know.
func (ev *evidence) patience(s *subject) string {
	p := s.place()
	if p == nil {
		return "once it has waited for " + span(webhook.DefaultUnknownEndpointAfter)
	}
	due := p.Envelope.EnqueuedAt
	if p.Envelope.NotBefore.After(due) {
		due = p.Envelope.NotBefore
	}
	if end := due.Add(webhook.DefaultUnknownEndpointAfter); end.After(ev.brokerNow) {
		return "at " + cli.Time(end)
	}
	return "when it is looked at next"
}

// String names the endpoint and its state.
func (t *target) String() string {
	text := t.ID + " is " + t.State
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	if !t.Since.IsZero() {
		text += " since " + cli.Time(t.Since)
	}
	return text
}
