package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/webhooks"
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

	looked int // at so many of them
}

// ofEvent gathers what is known of the deliveries of an event. If there is no such event it returns ev, with a note of that.
func (ev *evidence) ofEvent(ctx context.Context, cfg *config.Config, s *backends.Set, id, tenant string) (*evidence, error) {
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
		if found, err := ev.ofDelivery(ctx, hooks, s, id); found || err != nil {
			return ev, err
		}
		ev.notes = append(ev.notes, fmt.Sprintf("nor is there a webhook event of that id and tenant %s (--tenant); its delivery to one endpoint is the job ENDPOINT:EVENT, or ENDPOINT:EVENT.TENANT", tenant))
		return ev, nil
	}
	if err != nil {
		return nil, err
	}
	fates, err := hooks.Deliveries(ctx, s, e)
	if err != nil {
		return nil, err
	}
	p := &published{ID: e.ID, Tenant: e.Tenant, Type: e.Type, At: e.At, Size: len(e.Body), Deliveries: len(fates), looked: min(len(fates), explainNames)}
	fates = fates[:p.looked]
	if err := hooks.SetStates(ctx, s, e, fates); err != nil {
		return nil, err
	}
	var texts []string
	for _, f := range fates {
		texts = append(texts, f.Job)
	}
	if len(texts) > 0 { // else nothing is left to look for
		if ev, err = gather(ctx, s, ev.program, cfg.Broker, texts...); err != nil {
			return nil, err
		}
	}
	ev.event, ev.of, ev.fates = p, e, fates
	return ev, nil
}

// ofDelivery looks for the delivery that a text names, ENDPOINT:EVENT or ENDPOINT:EVENT.TENANT: one that waits in a line has no job yet, and one that was
// not made has none at all. It reports whether the endpoint wants the event or was called for it.
func (ev *evidence) ofDelivery(ctx context.Context, hooks *webhooks.Settings, s *backends.Set, text string) (bool, error) {
	endpoint, rest, ok := strings.Cut(text, ":")
	id, tenant, _ := strings.Cut(rest, ".")
	if !ok || endpoint == "" || id == "" {
		return false, nil
	}
	e, err := s.Journal.Event(ctx, cmp.Or(tenant, webhook.DefaultTenant), id)
	if errors.Is(err, webhook.ErrNoEvent) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	fates, err := hooks.Deliveries(ctx, s, e)
	if err != nil {
		return false, err
	}
	fates = slices.DeleteFunc(fates, func(f webhooks.Delivery) bool { return f.Endpoint != endpoint })
	if len(fates) == 0 {
		ev.notes = append(ev.notes, fmt.Sprintf("event %s of tenant %s is kept, but endpoint %s neither wants it nor was called for it", e.ID, e.Tenant, endpoint))
		return false, nil
	}
	ev.of, ev.fates = e, fates
	return true, hooks.SetStates(ctx, s, e, fates)
}

// unseen are the deliveries of the event that no job is known of.
func (ev *evidence) unseen() []jobView {
	var views []jobView
	all := ev.subjects()
	for _, f := range ev.fates {
		if slices.ContainsFunc(all, func(s *subject) bool { return s.job == f.Job || s.key == f.Job }) {
			continue
		}
		s := &subject{job: f.Job, kind: webhook.KindDeliver, destination: f.Endpoint}
		v := jobView{
			Job: f.Job, Kind: s.kind, Key: f.Job, Destination: f.Endpoint, State: stateUnseen, Why: ev.missing(f), MaxAttempts: ev.mostAttempts(s), Endpoint: ev.targetOf(s),
		}
		switch {
		case !f.Delivered.IsZero():
			v.State, v.Why = stateCompleted, fmt.Sprintf("was delivered at %s", cli.Time(f.Delivered))
		case f.Position != nil:
			v.State, v.Why = stateInLine, ev.inLine(s, *f.Position)
		}
		views = append(views, v)
	}
	return views
}

// inLine says where in the line of its endpoint a delivery waits, and what the endpoint has to say to that.
func (ev *evidence) inLine(s *subject, l webhooks.QueuePosition) string {
	var why string
	switch {
	case l.Place > 1:
		why = fmt.Sprintf("waits %s in the line of endpoint %s, behind event %s, its head since %s", cli.Ordinal(l.Place), s.destination, l.Head, cli.Time(l.Since))
	case ev.finds && ev.complete:
		why = fmt.Sprintf("is the head of the line of endpoint %s since %s, and its job is in no queue: workers enqueue it again within an hour", s.destination, cli.Time(l.Since))
	default:
		why = fmt.Sprintf("is the head of the line of endpoint %s since %s: its job is in the broker, which cannot tell where", s.destination, cli.Time(l.Since))
	}
	if closed := ev.closed(s); closed != "" {
		why += "; " + closed
	}
	return why
}

// missing says what is known of a delivery without a job.
func (ev *evidence) missing(f webhooks.Delivery) string {
	again := fmt.Sprintf("%s endpoints resend %s %s sends it", ev.program, f.Endpoint, ev.of.ID)
	missed := fmt.Sprintf("%s endpoints recover %s --since %s sends it", ev.program, f.Endpoint, cli.Time(ev.of.At))
	switch {
	case f.Last != nil:
		said := f.Last.Error
		if f.Last.Status > 0 {
			said = fmt.Sprintf("status %d", f.Last.Status)
		}
		return fmt.Sprintf("is in no queue and no store, after %s, the last at %s (%s): %s", count(f.Attempts, "call"), cli.Time(f.Last.At), headline(cmp.Or(said, f.Last.Phase)), again)
	case f.AddedLater:
		return "was never made, since the endpoint was added after the event: " + again
	case f.NotMade(ev.of):
		return fmt.Sprintf("was not made, because the endpoint was gone then, since %s: once it is enabled, %s (resend would make a dead letter)", cli.Time(f.Since), missed)
	case f.EndpointState == string(webhook.StateActive) && f.Since.After(ev.of.At):
		return fmt.Sprintf("was not made, likely because the endpoint was gone then: it is active again since %s, and %s", cli.Time(f.Since), missed)
	case f.Ordered:
		return "was never made, or its records are older than their retention: " + missed
	}
	return "was never made, or its records are older than their retention: " + again
}

func (p *published) print(b *strings.Builder) {
	fmt.Fprintf(b, "event %s of tenant %s was published at %s: %s, %s, for %s", cli.OneLine(p.ID), cli.OneLine(p.Tenant), cli.Time(p.At), p.Type,
		count(p.Size, "byte"), count(p.Deliveries, "endpoint"))
	if more := p.Deliveries - p.looked; more > 0 {
		fmt.Fprintf(b, ", of which %d are not shown here (see events show)", more)
	}
	b.WriteString(".\n")
}
