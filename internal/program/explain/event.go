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

// eventView is a webhook event, as explain tells of it.
type eventView struct {
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

// ofEvent gathers what is known of the deliveries of an event. If there is no such event it returns d, with a note of that.
func (d *diagnosis) ofEvent(ctx context.Context, cfg *config.Config, s *backends.Set, id, tenant string) (*diagnosis, error) {
	if s.Journal == nil {
		return d, nil
	}
	hooks, err := webhooks.Read(cfg)
	if err != nil {
		return nil, cli.Fail(cli.Usage, err)
	}
	e, err := s.Journal.Event(ctx, tenant, id)
	if errors.Is(err, webhook.ErrNoEvent) {
		if !hooks.Any() {
			return d, nil
		}
		if found, err := d.ofDelivery(ctx, hooks, s, id); found || err != nil {
			return d, err
		}
		d.notes = append(d.notes, fmt.Sprintf("nor is there a webhook event of that id and tenant %s (--tenant); its delivery to one endpoint is the job ENDPOINT:EVENT, or ENDPOINT:EVENT.TENANT", tenant))
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	deliveries, err := hooks.Deliveries(ctx, s, e)
	if err != nil {
		return nil, err
	}
	p := &eventView{ID: e.ID, Tenant: e.Tenant, Type: e.Type, At: e.At, Size: len(e.Body), Deliveries: len(deliveries), looked: min(len(deliveries), explainNames)}
	deliveries = deliveries[:p.looked]
	if err := hooks.SetStates(ctx, s, e, deliveries); err != nil {
		return nil, err
	}
	var texts []string
	for _, f := range deliveries {
		texts = append(texts, f.Job)
	}
	if len(texts) > 0 { // else nothing is left to look for
		if d, err = gather(ctx, s, d.program, cfg.Broker, texts...); err != nil {
			return nil, err
		}
	}
	d.event, d.of, d.deliveries = p, e, deliveries
	return d, nil
}

// ofDelivery looks for the delivery that a text names, ENDPOINT:EVENT or ENDPOINT:EVENT.TENANT: one that waits in a line has no job yet, and one that was
// not made has none at all. It reports whether the endpoint wants the event or was called for it.
func (d *diagnosis) ofDelivery(ctx context.Context, hooks *webhooks.Settings, s *backends.Set, text string) (bool, error) {
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
	deliveries, err := hooks.Deliveries(ctx, s, e)
	if err != nil {
		return false, err
	}
	deliveries = slices.DeleteFunc(deliveries, func(f webhooks.Delivery) bool { return f.Endpoint != endpoint })
	if len(deliveries) == 0 {
		d.notes = append(d.notes, fmt.Sprintf("event %s of tenant %s is kept, but endpoint %s neither wants it nor was called for it", e.ID, e.Tenant, endpoint))
		return false, nil
	}
	d.of, d.deliveries = e, deliveries
	return true, hooks.SetStates(ctx, s, e, deliveries)
}

// unseen are the deliveries of the event that no job is known of.
func (d *diagnosis) unseen() []jobView {
	var views []jobView
	all := d.matching()
	for _, f := range d.deliveries {
		if slices.ContainsFunc(all, func(j *job) bool { return j.id == f.Job || j.key == f.Job }) {
			continue
		}
		j := &job{id: f.Job, kind: webhook.KindDeliver, destination: f.Endpoint}
		v := jobView{
			Job: f.Job, Kind: j.kind, Key: f.Job, Destination: f.Endpoint, State: stateUnseen, Why: d.missing(f), MaxAttempts: d.mostAttempts(j), Endpoint: d.endpointOf(j),
		}
		switch {
		case !f.Delivered.IsZero():
			v.State, v.Why = stateCompleted, fmt.Sprintf("was delivered at %s", cli.Time(f.Delivered))
		case f.Position != nil:
			v.State, v.Why = stateQueued, d.inOrderedQueue(j, *f.Position)
		}
		views = append(views, v)
	}
	return views
}

// inOrderedQueue says where in the line of its endpoint a delivery waits, and what the endpoint has to say to that.
func (d *diagnosis) inOrderedQueue(j *job, l webhooks.QueuePosition) string {
	var why string
	switch {
	case l.Place > 1:
		why = fmt.Sprintf("waits %s in the ordered queue of endpoint %s, behind event %s, its head since %s", cli.Ordinal(l.Place), j.destination, l.Head, cli.Time(l.Since))
	case d.finds && d.complete:
		why = fmt.Sprintf("is the head of the ordered queue of endpoint %s since %s, and its job is in no queue: workers enqueue it again within an hour", j.destination, cli.Time(l.Since))
	default:
		why = fmt.Sprintf("is the head of the ordered queue of endpoint %s since %s: its job is in the broker, which cannot tell where", j.destination, cli.Time(l.Since))
	}
	if closed := d.closed(j); closed != "" {
		why += "; " + closed
	}
	return why
}

// missing says what is known of a delivery without a job.
func (d *diagnosis) missing(f webhooks.Delivery) string {
	again := fmt.Sprintf("%s endpoints resend %s %s sends it", d.program, f.Endpoint, d.of.ID)
	missed := fmt.Sprintf("%s endpoints recover %s --since %s sends it", d.program, f.Endpoint, cli.Time(d.of.At))
	switch {
	case f.Last != nil:
		said := f.Last.Error
		if f.Last.Status > 0 {
			said = fmt.Sprintf("status %d", f.Last.Status)
		}
		return fmt.Sprintf("is in no queue and no store, after %s, the last at %s (%s): %s", count(f.Attempts, "call"), cli.Time(f.Last.At), headline(cmp.Or(said, f.Last.Phase)), again)
	case f.AddedLater:
		return "was never made, since the endpoint was added after the event: " + again
	case f.NotMade(d.of):
		return fmt.Sprintf("was not made, because the endpoint was gone then, since %s: once it is enabled, %s (resend would make a dead letter)", cli.Time(f.Since), missed)
	case f.EndpointState == string(webhook.StateActive) && f.Since.After(d.of.At):
		return fmt.Sprintf("was not made, likely because the endpoint was gone then: it is active again since %s, and %s", cli.Time(f.Since), missed)
	case f.Ordered:
		return "was never made, or its records are older than their retention: " + missed
	}
	return "was never made, or its records are older than their retention: " + again
}

func (p *eventView) print(b *strings.Builder) {
	fmt.Fprintf(b, "event %s of tenant %s was published at %s: %s, %s, for %s", cli.OneLine(p.ID), cli.OneLine(p.Tenant), cli.Time(p.At), p.Type,
		count(p.Size, "byte"), count(p.Deliveries, "endpoint"))
	if more := p.Deliveries - p.looked; more > 0 {
		fmt.Fprintf(b, ", of which %d are not shown here (see events show)", more)
	}
	b.WriteString(".\n")
}
