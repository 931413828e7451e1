package webhookapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/ordering"
)

// Status is how an endpoint fares.
type Status struct {
	Health Health `json:"health"`
	Traffic
}

// Traffic is what is known of an endpoint's deliveries beside its health. What is not known is absent.
type Traffic struct {
	// Breaker is how live workers see it.
	Breaker *fleet.View `json:"breaker,omitempty"`
	// Last is the newest call that is logged.
	Last *journal.Attempt `json:"last_attempt,omitempty"`
	// Held and Dead count its deliveries in the dead-letter store.
	Held *int `json:"held,omitempty"`
	Dead *int `json:"dead_letters,omitempty"`
	// Queued is how many are in its ordered queue, the head included; absent if it does not ask for order and none is.
	Queued *int `json:"in_ordered_queue,omitempty"`
}

// StatusSources are where a [Status] comes from.
type StatusSources struct {
	// Registry and Journal are required.
	Registry *endpoints.Registry
	Journal  journal.Store
	// Queues, Letters and StatusStore may be nil: what they would tell is absent then.
	Queues      ordering.Queues
	Letters     dlq.Store
	StatusStore fleet.StatusStore
}

// Status asks for one endpoint: the health, the status store, the newest call, and three counts.
func (s StatusSources) Status(ctx context.Context, e endpoints.Entry) (Status, error) {
	h, err := s.Registry.Health(ctx, e.ID)
	if err != nil {
		return Status{}, err
	}
	out := Status{Health: ShowHealth(h)}
	if s.StatusStore != nil {
		reports, err := s.StatusStore.Reports(ctx)
		if err == nil || len(reports) > 0 { // a report of another version is left out
			v := fleet.Look(reports, e.ID)
			out.Breaker = &v
		}
	}
	calls, _, err := s.Journal.Attempts(ctx, journal.AttemptFilter{Endpoint: e.ID}, "", 1)
	if err != nil {
		return Status{}, err
	}
	if len(calls) > 0 {
		out.Last = &calls[0]
	}
	return out, s.count(ctx, e, &out.Traffic)
}

// count counts the deliveries that are held, dead, or in the ordered queue.
func (s StatusSources) count(ctx context.Context, e endpoints.Entry, to *Traffic) error {
	if s.Queues != nil {
		n, err := s.Queues.Len(ctx, e.ID)
		if err != nil {
			return fmt.Errorf("count the line of endpoint %q: %w", e.ID, err)
		}
		if e.Ordered || n > 0 {
			to.Queued = &n
		}
	}
	if s.Letters == nil {
		return nil
	}
	for state, to := range map[dlq.State]**int{dlq.StateHeld: &to.Held, dlq.StateDead: &to.Dead} {
		n, err := s.Letters.Count(ctx, dlq.Filter{Kind: webhook.KindDeliver, Destination: e.ID, States: []dlq.State{state}})
		if err != nil {
			return fmt.Errorf("count %s deliveries of endpoint %q: %w", state, e.ID, err)
		}
		*to = &n
	}
	return nil
}

// healthAnswer has the health beside the rest, not within it.
type healthAnswer struct {
	Health
	Traffic
}

func (a *api) health(w http.ResponseWriter, r *http.Request) error {
	if err := query(r).err(); err != nil {
		return err
	}
	e, err := a.cfg.Registry.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	s, err := StatusSources{
		Registry: a.cfg.Registry, Journal: a.cfg.Journal, Queues: a.cfg.Queues, Letters: a.cfg.Letters, StatusStore: a.cfg.StatusStore,
	}.Status(r.Context(), e)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, healthAnswer{s.Health, s.Traffic})
}
