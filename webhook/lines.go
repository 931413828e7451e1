package webhook

import (
	"context"
	"time"
)

// Place is one delivery in the line of an endpoint.
type Place struct {
	Endpoint, Tenant, Event string
	// Since is when it became the head of its line, by the store's clock.
	Since time.Time
}

// Lines keeps the deliveries of endpoints that ask for order: one line for each endpoint, in the order of publishing. Only the head of a line has a
// job. Package webhook/journal has two; storetest has the suite that both pass. Implementations are safe for concurrent use; each call is done whole or
// not at all.
type Lines interface {
	// Append puts an event at the end of the lines of endpoints, but for those in which it waits already. It returns the heads whose jobs the
	// caller is to enqueue: those that became heads by this call, and those that are the event's own.
	Append(ctx context.Context, tenant, event string, endpoints []string) ([]Place, error)
	// Leave takes a delivery out of its line, if it is there, whatever its Since. It returns the head whose job the caller is to enqueue, if one
	// became so by this call.
	Leave(ctx context.Context, p Place) (next Place, ok bool, err error)
	// Stale returns at most limit heads whose jobs were to be enqueued longer than wait ago, the longest first, and notes that they are to be
	// enqueued again. For a head that was returned n times before, wait is doubled n times, up to longest.
	Stale(ctx context.Context, wait, longest time.Duration, limit int) ([]Place, error)
	// Drop takes what is a tenant's out of the line of an endpoint and returns how many that were. A head of another tenant that there is then is
	// one that Stale finds.
	Drop(ctx context.Context, tenant, endpoint string) (int, error)
	// Waiting is how many deliveries are in the line of an endpoint, the head included.
	Waiting(ctx context.Context, endpoint string) (int, error)
	// Ahead is how many deliveries are ahead of one in its line, whatever its Since, and which is the line's head; ok says that it is there.
	Ahead(ctx context.Context, p Place) (n int, head Place, ok bool, err error)
}
