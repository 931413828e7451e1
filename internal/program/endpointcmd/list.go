package endpointcmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// page is how many endpoints are read at once.
const page = 500

func (p *program) listCommand() *cobra.Command {
	var tenant, state string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List endpoints by id",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := endpoints.Filter{Tenant: tenant, State: webhook.State(state)}
			switch f.State {
			case "", webhook.StateActive, webhook.StatePaused, webhook.StateDisabled:
			default:
				return cli.Refuse("--state %q: use active, paused or disabled", state)
			}
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error { return p.list(ctx, s, f) })
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "only those of this `tenant`")
	cmd.Flags().StringVar(&state, "state", "", "only those in this `state`: active, paused or disabled")
	return cmd
}

// list prints one line per endpoint. Those whose secrets cannot be read are printed, too, and told by the error.
func (p *program) list(ctx context.Context, s *session, f endpoints.Filter) error {
	var rows [][]string
	var unread []error
	for after := ""; ; {
		found, err := s.registry.List(ctx, f, after, page)
		if err != nil && found == nil {
			return err
		}
		unread = append(unread, err)
		shown := make([]listed, len(found))
		for i, entry := range found {
			shown[i].Endpoint = webhookapi.Show(entry)
			after = entry.ID
		}
		if err := s.withHealth(ctx, shown); err != nil {
			return err
		}
		for _, e := range shown {
			if p.Settings.JSON {
				if err := cli.JSON(p.IO.Out, e); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, []string{
				e.ID, e.Tenant, stateText(e.Endpoint), cli.OrDash(e.Origin), cli.Cut(eventsText(e.Events), 40), cli.OrDash(e.failures()), cli.Time(e.Updated),
			})
		}
		if len(found) < page {
			break
		}
	}
	var err error
	if !p.Settings.JSON {
		err = cli.Table(p.IO.Out, []string{"ID", "TENANT", "STATE", "AT", "EVENTS", "FAILURES", "CHANGED"}, rows)
	}
	return errors.Join(append(unread, err)...)
}

func stateText(e webhookapi.Endpoint) string {
	if e.Reason == "" {
		return e.State
	}
	return e.State + " (" + cli.Cut(e.Reason, 40) + ")"
}

func eventsText(patterns []string) string {
	if len(patterns) == 0 {
		return "*"
	}
	return strings.Join(patterns, ",")
}

func (p *program) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show one endpoint, without its secrets, and how it fares",
		Long: `Shows one endpoint without its secrets, and how it fares: failures since its last success, the newest call that is logged, its breaker as live workers
tell of it, and how many deliveries are held, dead letters, or in the line of an endpoint that asks for order, its head included.

Workers report successes once a minute: last success may be so old.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error { return p.show(ctx, s, args[0]) })
		},
	}
}

// shown is the JSON form of show.
type shown struct {
	webhookapi.Endpoint
	webhookapi.Status
}

func (p *program) show(ctx context.Context, s *session, id string) error {
	e, err := s.registry.Get(ctx, id)
	if err != nil {
		return err
	}
	fares, err := webhookapi.StatusSources{
		Registry: s.registry, Journal: s.open.Journal, Queues: s.open.Queues, Letters: s.open.Letters, StatusStore: s.open.Statuses,
	}.Status(ctx, e)
	if err != nil {
		return err
	}
	out := shown{webhookapi.Show(e), fares}
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, out)
	}
	for _, line := range lines(out) {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(p.IO.Out, "%-14s %s\n", line[0], cli.OneLine(line[1])); err != nil {
			return fmt.Errorf("print endpoint: %w", err)
		}
	}
	return nil
}

// lines are what people are shown; what is empty is left out.
func lines(e shown) [][2]string {
	out := [][2]string{
		{"id", e.ID},
		{"tenant", e.Tenant},
		{"at", e.Origin},
		{"state", stateText(e.Endpoint)},
	}
	if e.State != string(webhook.StateActive) && !e.Since.IsZero() {
		out = append(out, [2]string{"since", cli.Time(e.Since)})
	}
	out = append(out,
		[2]string{"events", eventsText(e.Events)},
		[2]string{"headers", strings.Join(e.Headers, ", ")},
		[2]string{"client errors", e.ClientErrors},
		[2]string{"timeout", e.Timeout},
		[2]string{"concurrency", strconv.Itoa(e.Concurrency)},
		[2]string{"rate", rateText(e.Rate)},
		[2]string{"backoff", e.Backoff},
		[2]string{"options", strings.Join(options(e.Endpoint), ", ")},
		[2]string{"signed with", keysText(e.Signing)},
	)
	for _, key := range e.Signing.VerifyKeys {
		out = append(out, [2]string{"verified with", key})
	}
	for name, value := range sorted(e.Metadata) {
		out = append(out, [2]string{"metadata", name + "=" + value})
	}
	out = append(out, statusLines(e.Status)...)
	return append(out, [2]string{"created", cli.Time(e.Created)}, [2]string{"changed", cli.Time(e.Updated)}, [2]string{"revision", strconv.FormatInt(e.Revision, 10)})
}

func rateText(rate float64) string {
	if rate == 0 {
		return ""
	}
	return strconv.FormatFloat(rate, 'g', -1, 64) + " per second"
}

func keysText(s webhookapi.Signing) string {
	text := "1 secret"
	if s.Keys != 1 {
		text = fmt.Sprintf("%d secrets", s.Keys)
	}
	for i, until := range s.RetiringUntil {
		if i == 0 {
			text += ", of which one retires at "
		} else {
			text += " and one at "
		}
		text += cli.Time(until)
	}
	return text
}

func options(e webhookapi.Endpoint) []string {
	var set []string
	for _, o := range []struct {
		on   bool
		name string
	}{
		{e.AllowHTTP, "http allowed"},
		{e.Ordered, "ordered"},
		{e.Shared, "shared"},
		{e.Adaptive, "adaptive"},
		{e.TLS.Certificate, "client certificate"},
		{e.TLS.RootCAs, "authorities of its own"},
	} {
		if o.on {
			set = append(set, o.name)
		}
	}
	return set
}
