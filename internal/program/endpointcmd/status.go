package endpointcmd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
)

// statusLines are what people are shown of how an endpoint fares; what is empty is left out.
func statusLines(s webhookapi.Status) [][2]string {
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
	}{{"held", s.Held}, {"dead letters", s.Dead}, {"in line", s.Queued}} {
		if c.n != nil {
			out = append(out, [2]string{c.name, strconv.Itoa(*c.n)})
		}
	}
	return out
}

// failuresText is "" for an endpoint that does not fail.
func failuresText(h webhookapi.Health) string {
	if h.Failures == 0 {
		return ""
	}
	return fmt.Sprintf("%d since %s", h.Failures, cli.Time(h.FailingSince))
}

// listed is one line of list in JSON.
type listed struct {
	webhookapi.Endpoint
	// Health is absent where there was no failure since the last success.
	Health *webhookapi.Health `json:"health,omitempty"`
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
		shown := webhookapi.ShowHealth(h)
		page[at[h.Endpoint]].Health = &shown
	}
	return err
}
