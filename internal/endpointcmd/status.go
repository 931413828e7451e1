package endpointcmd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/fleet"
	"github.com/caisson-go/caisson/internal/cli"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/api"
	"github.com/caisson-go/caisson/webhook/journal"
)

// status is how an endpoint fares. What is not known is absent.
type status struct {
	Health api.Health `json:"health"`
	// Breaker is how live workers see it.
	Breaker *fleet.View `json:"breaker,omitempty"`
	// Last is the newest call that is logged.
	Last *journal.Attempt `json:"last_attempt,omitempty"`
	// Held and Dead count its deliveries in the dead-letter store.
	Held *int `json:"held,omitempty"`
	Dead *int `json:"dead_letters,omitempty"`
}

// status asks for one endpoint: the health, the board, the newest call, and two counts.
func (s *session) status(ctx context.Context, id string) (status, error) {
	h, err := s.registry.Health(ctx, id)
	if err != nil {
		return status{}, err
	}
	out := status{Health: api.ShowHealth(h)}
	if s.open.Board != nil {
		reports, err := s.open.Board.Reports(ctx)
		if err == nil || len(reports) > 0 { // a report of another version is left out
			v := fleet.Look(reports, id)
			out.Breaker = &v
		}
	}
	calls, _, err := s.open.Journal.Attempts(ctx, journal.AttemptFilter{Endpoint: id}, "", 1)
	if err != nil {
		return status{}, err
	}
	if len(calls) > 0 {
		out.Last = &calls[0]
	}
	if s.open.Letters == nil {
		return out, nil
	}
	for state, to := range map[dlq.State]**int{dlq.Held: &out.Held, dlq.Dead: &out.Dead} {
		n, err := s.open.Letters.Count(ctx, dlq.Filter{Kind: webhook.KindDeliver, Destination: id, States: []dlq.State{state}})
		if err != nil {
			return status{}, fmt.Errorf("count %s deliveries of endpoint %q: %w", state, id, err)
		}
		*to = &n
	}
	return out, nil
}

// lines are what people are shown of it; what is empty is left out.
func (s status) lines() [][2]string {
	out := [][2]string{{"failures", failuresText(s.Health)}}
	if !s.Health.LastSuccess.IsZero() {
		out = append(out, [2]string{"last success", cli.Time(s.Health.LastSuccess)})
	}
	if a := s.Last; a != nil {
		answer := a.Phase
		if a.Status > 0 {
			answer = strconv.Itoa(a.Status)
		}
		if said := cmp.Or(a.Error, a.Excerpt); said != "" {
			answer += ", " + cli.Cut(said, 200)
		}
		out = append(out, [2]string{"last call", fmt.Sprintf("%s at %s, for event %s", answer, cli.Time(a.At), a.Event)})
	}
	if s.Breaker != nil {
		out = append(out, [2]string{"breaker", cmp.Or(strings.TrimPrefix(cli.Breaker(*s.Breaker), "breaker "), "not known: no worker is live")})
	}
	for _, c := range []struct {
		name string
		n    *int
	}{{"held", s.Held}, {"dead letters", s.Dead}} {
		if c.n != nil {
			out = append(out, [2]string{c.name, strconv.Itoa(*c.n)})
		}
	}
	return out
}

// failuresText is "" for an endpoint that does not fail.
func failuresText(h api.Health) string {
	if h.Failures == 0 {
		return ""
	}
	return fmt.Sprintf("%d since %s", h.Failures, cli.Time(h.FailingSince))
}

// listed is one line of list in JSON.
type listed struct {
	api.Endpoint
	// Health is absent where there was no failure since the last success.
	Health *api.Health `json:"health,omitempty"`
}

func (e listed) failures() string {
	if e.Health == nil {
		return ""
	}
	return failuresText(*e.Health)
}

// withHealth adds what workers saw of those of a page that fail: one question for them all.
func (s *session) withHealth(ctx context.Context, page []listed) error {
	ids := make([]string, len(page))
	at := make(map[string]int, len(page))
	for i, e := range page {
		ids[i], at[e.ID] = e.ID, i
	}
	failing, err := s.registry.Failing(ctx, ids)
	for _, h := range failing {
		shown := api.ShowHealth(h)
		page[at[h.Endpoint]].Health = &shown
	}
	return err
}
