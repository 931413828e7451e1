package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/cli"
	"github.com/caisson-go/caisson/internal/config"
	"github.com/caisson-go/caisson/internal/stack"
	"github.com/caisson-go/caisson/internal/webhooks"
	"github.com/caisson-go/caisson/webhook"
)

// published is a webhook event, as explain tells of it.
type published struct {
	ID     string    `json:"id"`
	Tenant string    `json:"tenant"`
	Type   string    `json:"type"`
	At     time.Time `json:"at"`
	// Size of the payload in bytes.
	Size int `json:"size"`
	// Deliveries is how many there are: explain looks at the first 20.
	Deliveries int `json:"deliveries"`

	fates []webhooks.Fate // of those that are looked at
}

// ofEvent gathers what is known of the deliveries of an event. If there is no such event it returns ev, with a note of that.
func (ev *evidence) ofEvent(ctx context.Context, cfg *config.Config, s *stack.Stack, id, tenant string) (*evidence, error) {
	if s.Journal == nil {
		return ev, nil
	}
	hooks, err := webhooks.Read(cfg)
	if err != nil {
		return nil, cli.Fail(cli.Usage, err)
	}
	e, err := s.Journal.Event(ctx, tenant, id)
	if errors.Is(err, webhook.ErrNoEvent) {
		if !hooks.Any() {
			return ev, nil
		}
		ev.notes = append(ev.notes, fmt.Sprintf("nor is there a webhook event of that id and tenant %s (--tenant); its delivery to one endpoint is the job ENDPOINT:EVENT, or ENDPOINT:EVENT.TENANT", tenant))
		return ev, nil
	}
	if err != nil {
		return nil, err
	}
	fates, err := hooks.Fates(ctx, s, e)
	if err != nil {
		return nil, err
	}
	p := &published{ID: e.ID, Tenant: e.Tenant, Type: e.Type, At: e.At, Size: len(e.Body), Deliveries: len(fates), fates: fates[:min(len(fates), explainNames)]}
	var texts []string
	for _, f := range p.fates {
		texts = append(texts, f.Job)
	}
	if len(texts) > 0 { // else nothing is left to look for
		if ev, err = gather(ctx, s, cfg.Broker, texts...); err != nil {
			return nil, err
		}
	}
	ev.event = p
	return ev, nil
}

// unseen are the deliveries of the event that no job is known of.
func (ev *evidence) unseen() []jobView {
	if ev.event == nil {
		return nil
	}
	var views []jobView
	all := ev.subjects()
	for _, f := range ev.event.fates {
		if slices.ContainsFunc(all, func(s *subject) bool { return s.job == f.Job || s.key == f.Job }) {
			continue
		}
		v := jobView{Job: f.Job, Kind: webhook.KindDeliver, Key: f.Job, Destination: f.Endpoint, State: stateUnseen, Why: ev.missing(f)}
		if !f.Delivered.IsZero() {
			v.State, v.Why = stateCompleted, fmt.Sprintf("was delivered at %s", cli.Time(f.Delivered))
		}
		views = append(views, v)
	}
	return views
}

// missing says what is known of a delivery without a job.
func (ev *evidence) missing(f webhooks.Fate) string {
	again := fmt.Sprintf("%s endpoints resend %s %s sends it", ev.program, f.Endpoint, ev.event.ID)
	switch {
	case f.Last != nil:
		said := f.Last.Error
		if f.Last.Status > 0 {
			said = fmt.Sprintf("status %d", f.Last.Status)
		}
		return fmt.Sprintf("is in no queue and no store, after %s, the last at %s (%s): %s", count(f.Attempts, "call"), cli.Time(f.Last.At), headline(cmp.Or(said, f.Last.Phase)), again)
	case f.Ordered:
		return fmt.Sprintf("waits behind others in the line of its endpoint, which is %s, or was never made", f.State)
	case f.AddedLater:
		return "was never made, since the endpoint was added after the event: " + again
	}
	return "was never made, or its records are older than their retention: " + again
}

func (p *published) print(b *strings.Builder) {
	fmt.Fprintf(b, "event %s of tenant %s was published at %s: %s, %s, for %s", cli.OneLine(p.ID), cli.OneLine(p.Tenant), cli.Time(p.At), p.Type,
		count(p.Size, "byte"), count(p.Deliveries, "endpoint"))
	if more := p.Deliveries - len(p.fates); more > 0 {
		fmt.Fprintf(b, ", of which %d are not shown here (see events show)", more)
	}
	b.WriteString(".\n")
}
