package endpointcmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

func (p *program) listEventsCommand() *cobra.Command {
	f := journal.EventFilter{WithoutBodies: true}
	var since string
	var g paging
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List published events, oldest first",
		Long: p.Text(`Lists the published events of a tenant without their payloads, oldest first. What became of one says PROGRAM events show ID.

Events are kept for webhook.event_retention.`),
		Example: p.Text(`  PROGRAM events list --since 1h --type 'invoice.*'`),
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if since != "" {
				if f.From, err = cli.ParseWhen(since, time.Now(), -1); err != nil {
					return cli.Refuse("--since: %w", err)
				}
			}
			if err := f.Check(); err != nil {
				return cli.Refuse("--type: %w", err)
			}
			if err := g.check(); err != nil {
				return err
			}
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error {
				return p.listEvents(ctx, s, f, g)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Tenant, "tenant", webhook.DefaultTenant, "`tenant` that the events were published for")
	flags.StringVar(&f.Type, "type", "", "only those of this `type`, or whose types begin so: invoice.*")
	flags.StringVar(&since, "since", "", "only those since then: a `time` (RFC 3339), or how long ago")
	g.register(flags)
	return cmd
}

func (p *program) listEvents(ctx context.Context, s *session, f journal.EventFilter, g paging) error {
	found, next, err := s.open.Journal.Events(ctx, f, g.after, g.limit)
	if err != nil {
		return err
	}
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, webhookapi.ShowEvents(found, next))
	}
	rows := make([][]string, len(found))
	for i, e := range found {
		rows[i] = []string{cli.Time(e.At), e.ID, e.Type, cli.OrDash(e.ContentType)}
	}
	if err := cli.Table(p.IO.Out, []string{"AT", "EVENT", "TYPE", "CONTENT TYPE"}, rows); err != nil {
		return err
	}
	p.more(next)
	return nil
}
