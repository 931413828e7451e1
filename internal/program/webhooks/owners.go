package webhooks

import (
	"context"
	"log/slog"
	"time"

	"github.com/caisson-go/caisson/webhook"
)

// owners remembers whose the endpoints are that ask for order, so that no delivery waits for a tenant that no longer has the endpoint.
type owners struct {
	drop   func(ctx context.Context, tenant, endpointID string) (int, error)
	of     map[string]string // tenants by endpoint
	logger *slog.Logger
}

// dropTime bounds dropping what is queued; the mirror waits for it.
const dropTime = 5 * time.Second

// changed drops what is queued for an endpoint that was deleted or belongs to another tenant now. What stays after an error is dead-lettered
// delivery by delivery.
func (o *owners) changed(e webhook.Endpoint, deleted bool) {
	before, known := o.of[e.ID]
	switch {
	case deleted:
		delete(o.of, e.ID)
	case known || e.Ordered: // it may no longer ask for order, and still have deliveries queued
		o.of[e.ID] = e.Tenant
	}
	if !known || !deleted && before == e.Tenant {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropTime)
	defer cancel()
	switch n, err := o.drop(ctx, before, e.ID); {
	case err != nil:
		o.logger.Warn("could not drop queued deliveries of a deleted endpoint; each will be dead-lettered",
			"endpoint", e.ID, "tenant", before, "error", err)
	case n > 0:
		o.logger.Info("dropped queued deliveries of a deleted endpoint", "endpoint", e.ID, "tenant", before, "deliveries", n)
	}
}
