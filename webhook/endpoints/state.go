package endpoints

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/webhook"
)

// Pause holds the jobs of an endpoint until it is enabled. Reasons are refused as Disable does.
func (r *Registry) Pause(ctx context.Context, id, reason string) (Entry, error) {
	if err := unreserved(reason); err != nil {
		return Entry{}, fmt.Errorf("pause endpoint %q: %w", id, err)
	}
	e, _, err := r.setState(ctx, id, webhook.StatePaused, reason, func(e webhook.Endpoint) bool {
		return e.State == webhook.StatePaused && e.Reason == reason
	})
	return e, err
}

// Disable disables an endpoint for a reason. One that is disabled already keeps its reason and time; changed says whether this call did it. The
// reasons that a [AutoDisabler] gives are refused: an operator's "gone" would make dead letters of what waits for the endpoint.
func (r *Registry) Disable(ctx context.Context, id, reason string) (e Entry, changed bool, err error) {
	if reason == "" {
		return Entry{}, false, fmt.Errorf("disable endpoint %q: say for which reason", id)
	}
	if err := unreserved(reason); err != nil {
		return Entry{}, false, fmt.Errorf("disable endpoint %q: %w", id, err)
	}
	return r.disable(ctx, id, reason, func(webhook.Endpoint) bool { return true })
}

// disable is Disable for all reasons, if the endpoint is still one that is due.
func (r *Registry) disable(ctx context.Context, id, reason string, due func(webhook.Endpoint) bool) (Entry, bool, error) {
	return r.setState(ctx, id, webhook.StateDisabled, reason, func(e webhook.Endpoint) bool { return e.State == webhook.StateDisabled || !due(e) })
}

// unreserved refuses the reasons that are ours.
func unreserved(reason string) error {
	if reason == webhook.ReasonGone || reason == webhook.ReasonFailing {
		return refusal(fmt.Errorf("reason %q is what a worker says that disables an endpoint by itself: say it in other words", reason))
	}
	return nil
}

// Enable makes an endpoint active, and forgets its failures.
func (r *Registry) Enable(ctx context.Context, id string) (Entry, error) {
	// The failures go first: between the two, an active endpoint with old failures could be disabled again.
	if err := r.cfg.Store.Recovered(ctx, id); err != nil {
		return Entry{}, fmt.Errorf("enable endpoint %q: %w", id, err)
	}
	e, _, err := r.setState(ctx, id, webhook.StateActive, "", func(e webhook.Endpoint) bool { return e.State == webhook.StateActive })
	return e, err
}

// setState gives an endpoint another state unless already says that there is nothing to do. The rest of it is not checked: also an endpoint whose URL is refused by now
// can be paused.
func (r *Registry) setState(ctx context.Context, id string, state webhook.State, reason string, already func(webhook.Endpoint) bool) (Entry, bool, error) {
	if err := state.Check(reason); err != nil {
		return Entry{}, false, fmt.Errorf("endpoint %q: %w", id, err)
	}
	return r.change(ctx, id, 0, func(e *webhook.Endpoint, now time.Time) (bool, error) {
		if already(*e) {
			return false, nil
		}
		e.State, e.Reason, e.Since = state, reason, now
		return true, nil
	})
}
