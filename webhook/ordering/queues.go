package ordering

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/webhook"
)

// Entry is one delivery in the ordered queue of an endpoint.
type Entry struct {
	Endpoint, Tenant, Event string
	// Since is when it became the head of its queue, by the store's clock.
	Since time.Time
}

// Queues keeps the deliveries of endpoints that ask for order: one queue for each endpoint, in the order of publishing. Implementations are safe for
// concurrent use; each call is done whole or not at all. Remove ignores Since.
type Queues interface {
	// Append puts an event at the end of the queues of endpoints, but for those that hold it already. It returns the heads whose jobs the caller is
	// to enqueue: those that became heads by this call, and those that are the event's own.
	Append(ctx context.Context, tenant, event string, endpoints []string) ([]Entry, error)
	// Remove takes a delivery out of its queue, if it is there. It returns the head whose job the caller is to enqueue, if one became so by this
	// call.
	Remove(ctx context.Context, e Entry) (next Entry, ok bool, err error)
	// Stale returns at most limit heads whose jobs were to be enqueued longer than wait ago, the longest first, and notes that they are to be
	// enqueued again. For a head that was returned n times before, wait is doubled n times, up to longest.
	Stale(ctx context.Context, wait, longest time.Duration, limit int) ([]Entry, error)
	// Drop takes what is a tenant's out of the queue of an endpoint and returns how many that were. A head of another tenant that there is then is
	// one that Stale finds.
	Drop(ctx context.Context, tenant, endpoint string) (int, error)
	// Len is how many deliveries are in the queue of an endpoint, the head included.
	Len(ctx context.Context, endpoint string) (int, error)
	// Ahead is how many deliveries are ahead of one in its queue, and which is the head; ok says that it is there.
	Ahead(ctx context.Context, e Entry) (n int, head Entry, ok bool, err error)
}

// EventReader finds what was published. The stores of package webhook/journal implement it.
type EventReader interface {
	// Event returns one event with its body, or [webhook.ErrNoEvent].
	Event(ctx context.Context, tenant, id string) (webhook.Event, error)
}
