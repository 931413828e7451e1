package endpointcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/webhook"
)

func (p *program) showEventCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a published event, and what became of it at each endpoint",
		Long: p.Text(`Shows a published event without its payload, the endpoints that want it or were called for it, and of each the state of its delivery, how often
it was called, and what it answered last. A delivery is delivered, held, dead, purged, in line, waiting, or was not made. Why one waits says PROGRAM explain ENDPOINT:EVENT.

Events are kept for webhook.event_retention, and calls for webhook.attempt_log.`),
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error { return p.showEvent(ctx, s, tenant, args[0]) })
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", webhook.DefaultTenant, "`tenant` that the event was published for")
	return cmd
}

// shownEvent is the JSON form of events show.
type shownEvent struct {
	webhook.Event
	// Size of the payload in bytes.
	Size       int                 `json:"size"`
	Deliveries []webhooks.Delivery `json:"deliveries"`
}

func (p *program) showEvent(ctx context.Context, s *session, tenant, id string) error {
	e, err := s.open.Journal.Event(ctx, tenant, id)
	if errors.Is(err, webhook.ErrNoEvent) {
		return fmt.Errorf("event %q of tenant %s: %w: --tenant names another tenant", id, tenant, err)
	}
	if err != nil {
		return err
	}
	deliveries, err := s.hooks.Deliveries(ctx, s.open, e)
	if err != nil {
		return err
	}
	if err := s.hooks.SetStates(ctx, s.open, e, deliveries); err != nil {
		return err
	}
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, shownEvent{e, len(e.Body), deliveries})
	}
	if _, err := fmt.Fprintf(p.IO.Out, "event %s of tenant %s: %s, %s of %s, published at %s\n",
		e.ID, e.Tenant, e.Type, cli.Count(len(e.Body), "byte"), cli.OneLine(e.ContentType), cli.Time(e.At)); err != nil {
		return fmt.Errorf("print event: %w", err)
	}
	return p.printDeliveries(s, deliveries)
}

func (p *program) printDeliveries(s *session, deliveries []webhooks.Delivery) error {
	if len(deliveries) == 0 {
		_, err := fmt.Fprintln(p.IO.Out, "no endpoint wants it")
		return err
	}
	rows := make([][]string, len(deliveries))
	for i, f := range deliveries {
		status, at, said := "-", time.Time{}, ""
		if f.Last != nil {
			at, said = f.Last.At, cmp.Or(f.Last.Error, f.Last.Excerpt)
			if f.Last.Status > 0 {
				status = strconv.Itoa(f.Last.Status)
			}
		}
		rows[i] = []string{f.Endpoint, deliveryText(f), strconv.Itoa(f.Attempts), status, cli.Time(at), cli.OrDash(cli.Cut(said, 80))}
	}
	if s.cfg.Webhook.AttemptLog == 0 {
		fmt.Fprintln(p.IO.Err, "calls are not logged (webhook.attempt_log): what follows STATE is not known")
	}
	return cli.Table(p.IO.Out, []string{"ENDPOINT", "STATE", "ATTEMPTS", "STATUS", "AT", "ANSWER"}, rows)
}

// deliveryText is the state of a delivery, and beside it what its endpoint has to do with that.
func deliveryText(f webhooks.Delivery) string {
	text := strings.ReplaceAll(string(f.State), "_", " ")
	var notes []string
	switch f.State {
	case webhooks.DeliveryStateDelivered:
		return text
	case webhooks.DeliveryStateQueued:
		text = "in line, " + cli.Ordinal(f.Position.Place)
	case webhooks.DeliveryStateUnknown:
		text = "waiting or dead"
	case webhooks.DeliveryStateWaiting:
		if notes = []string{"not tried yet"}; f.Attempts > 0 {
			notes = []string{"tried"}
		}
	}
	switch {
	case f.AddedLater:
		notes = append(notes, "endpoint added later")
	case f.EndpointState == "":
		notes = append(notes, "endpoint not known")
	case f.Reason == webhook.ReasonGone:
		notes = append(notes, "endpoint gone")
	case f.EndpointState != string(webhook.StateActive):
		notes = append(notes, "endpoint "+f.EndpointState)
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}
