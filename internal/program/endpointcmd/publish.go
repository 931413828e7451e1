package endpointcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/webhook"
)

func (p *program) publishCommand() *cobra.Command {
	var e webhook.Event
	cmd := &cobra.Command{
		Use:   "publish TYPE PAYLOAD | @FILE | -",
		Short: "Publish one event to all endpoints of a tenant that want its type",
		Long: `Publishes one event and prints its id once the broker has confirmed a delivery for each endpoint.

PAYLOAD is delivered byte for byte: the argument, a file (@FILE), or standard input (-); '' is an empty one. Repeat the command with the printed --id after an error: nobody
gets the event twice.`,
		Example: p.Text(`  PROGRAM events publish invoice.paid '{"invoice":7}' --id evt_7`),
		Args:    cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Refuse("the payload is missing: give it behind the type, or @FILE, or - for standard input; '' publishes an empty one")
			}
			var err error
			if e.Body, err = p.payload(args[1]); err != nil {
				return err
			}
			e.Type = args[0]
			return p.with(cmd, needs{mode: backends.Create, broker: true}, func(ctx context.Context, s *session) error { return p.publish(ctx, s, e) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&e.ID, "id", "", "event `id`, the webhook-id of its deliveries; made if it is not given")
	flags.StringVar(&e.Tenant, "tenant", "", "`tenant` whose endpoints get it; without it default")
	flags.StringVar(&e.ContentType, "content-type", "", "media `type` of the payload; without it application/json")
	return cmd
}

func (p *program) publish(ctx context.Context, s *session, e webhook.Event) error {
	e, err := e.Checked()
	if err != nil {
		return cli.Fail(cli.Usage, err)
	}
	queue := s.cfg.UsualQueue()
	if most := s.hooks.MaxEvent(s.open.Broker.Capabilities(queue).MaxBody); len(e.Body) > most {
		return cli.Refuse("the payload has %d bytes, and at most %d are taken: raise webhook.max_event, if the broker takes more", len(e.Body), most)
	}
	published, err := s.hooks.PublishOnce(ctx, s.open, e)
	if errors.Is(err, webhook.ErrEventConflict) {
		return fmt.Errorf("%w, with another --id", err)
	}
	if err != nil {
		return err
	}
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, published)
	}
	fmt.Fprintf(p.IO.Err, "for %s\n", cli.Count(published.Endpoints, "endpoint"))
	_, err = fmt.Fprintln(p.IO.Out, published.ID)
	return err
}
