package endpoints

import (
	"context"

	"github.com/caisson-go/caisson/webhook"
)

// Look takes over what has changed, as Run does each interval.
func (m *Mirror) Look(ctx context.Context) error { return m.look(ctx) }

// DisableAs disables an endpoint as a disabler does.
func (r *Registry) DisableAs(ctx context.Context, id, reason string) (Entry, bool, error) {
	return r.disable(ctx, id, reason, func(webhook.Endpoint) bool { return true })
}
