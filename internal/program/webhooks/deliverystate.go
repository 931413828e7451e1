package webhooks

import (
	"context"
	"fmt"
	"slices"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/ordering"
)

// DeliveryState is the state of one delivery.
type DeliveryState string

// The outcomes. What is sure comes before what is likely.
const (
	DeliveryStateDelivered DeliveryState = "delivered"
	DeliveryStateHeld      DeliveryState = "held"
	DeliveryStateDead      DeliveryState = "dead"
	DeliveryStatePurged    DeliveryState = "purged"           // it was dead
	DeliveryStateQueued    DeliveryState = "in_ordered_queue" // its endpoint asks for order
	DeliveryStateNotMade   DeliveryState = "not_made"         // the endpoint was not there, or gone
	DeliveryStateWaiting   DeliveryState = "waiting"          // tried or not
	// DeliveryStateUnknown is waiting or dead: the dead letters are in the broker, which cannot be asked.
	DeliveryStateUnknown DeliveryState = "unknown"
)

// SetStates says of each delivery of an event where it stands. It asks line, dead letters and claims for each that no logged call delivered.
func (s *Settings) SetStates(ctx context.Context, open *backends.Set, e webhook.Event, deliveries []Delivery) error {
	for i := range deliveries {
		if err := deliveries[i].setState(ctx, open, e); err != nil {
			return fmt.Errorf("delivery of event %s to endpoint %s: %w", e.ID, deliveries[i].Endpoint, err)
		}
	}
	return nil
}

func (f *Delivery) setState(ctx context.Context, open *backends.Set, e webhook.Event) (err error) {
	if f.State = DeliveryStateDelivered; !f.Delivered.IsZero() {
		return nil
	}
	if open.Queues != nil {
		if err := f.findPosition(ctx, open.Queues, e); err != nil {
			return err
		}
	}
	if f.State, err = f.letter(ctx, open.Letters); err != nil || f.State != "" {
		return err
	}
	done, err := f.completed(ctx, open.Claims)
	switch {
	case err != nil:
		return err
	case done:
		f.State = DeliveryStateDelivered
	case f.Position != nil:
		f.State = DeliveryStateQueued
	case f.NotMade(e):
		f.State = DeliveryStateNotMade
	case open.Letters == nil && f.Attempts > 0:
		f.State = DeliveryStateUnknown
	default:
		f.State = DeliveryStateWaiting
	}
	return nil
}

func (f *Delivery) findPosition(ctx context.Context, lines ordering.Queues, e webhook.Event) error {
	n, head, ok, err := lines.Ahead(ctx, ordering.Entry{Endpoint: f.Endpoint, Tenant: e.Tenant, Event: e.ID})
	if ok {
		f.Position = &QueuePosition{Place: n + 1, Head: head.Event, Since: head.Since}
	}
	return err
}

// letters is how many dead letters of a delivery are looked at: one for each run.
const letters = 100

// letter judges by the dead letter of the newest run; "" if that says nothing.
func (f *Delivery) letter(ctx context.Context, store dlq.Store) (DeliveryState, error) {
	if store == nil {
		return "", nil
	}
	found, _, err := store.List(ctx, dlq.Filter{Job: f.Job, States: dlq.States()}, "", letters)
	if err != nil || len(found) == 0 {
		return "", err
	}
	last := slices.MaxFunc(found, func(a, b dlq.Entry) int { return a.Run - b.Run })
	return map[dlq.State]DeliveryState{dlq.StateHeld: DeliveryStateHeld, dlq.StateDead: DeliveryStateDead, dlq.StatePurged: DeliveryStatePurged}[last.State], nil
}

// completed asks the claims, which remember what calls that are not logged have done.
func (f *Delivery) completed(ctx context.Context, store idempotency.Store) (bool, error) {
	finder, ok := store.(idempotency.Finder)
	if !ok {
		return false, nil
	}
	found, err := finder.Find(ctx, f.Job)
	return slices.ContainsFunc(found.Records, func(r idempotency.Record) bool {
		return r.Job == f.Job && r.Key.Scope == webhook.KindDeliver && r.State == idempotency.StatusCompleted
	}), err
}
