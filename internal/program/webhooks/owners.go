package webhooks

import (
	"context"
	"log/slog"
	"time"

	"github.com/caisson-go/caisson/webhook"
)

// owners remembers whose the endpoints are that ask for order, so that nothing waits in a line for a tenant that has the endpoint no more.
type owners struct {
	drop   func(ctx context.Context, tenant, endpointID string) (int, error)
	of     map[string]string // tenants by endpoint
	logger *slog.Logger
}

// dropTime bounds the emptying of a line, for which the mirror waits.
const dropTime = 5 * time.Second

// changed empties the line of an endpoint that was deleted, or has come back as another tenant's. What stays in it after an error is given up
// delivery by delivery.
func (o *owners) changed(e webhook.Endpoint, deleted bool) {
	before, known := o.of[e.ID]
	switch {
	case deleted:
		delete(o.of, e.ID)
	case known || e.Ordered: // it may ask for order no more, and have a line still
		o.of[e.ID] = e.Tenant
	}
	if !known || !deleted && before == e.Tenant {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropTime)
	defer cancel()
	switch n, err := o.drop(ctx, before, e.ID); {
	case err != nil:
		o.logger.Warn("the line of a webhook endpoint that is no more could not be emptied: its deliveries are given up one by one",
			"endpoint", e.ID, "tenant", before, "error", err)
	case n > 0:
		o.logger.Info("the line of a webhook endpoint that is no more was emptied", "endpoint", e.ID, "tenant", before, "deliveries", n)
	}
}
