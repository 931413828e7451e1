package endpointcmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// stateCommand is a command that puts endpoints into another state.
func (p *program) stateCommand(cmd *cobra.Command, done string, to func(ctx context.Context, s *session, id string) (endpoints.Entry, error)) *cobra.Command {
	cmd.Args = cli.Args(cobra.MinimumNArgs(1))
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error {
			return p.each(ids, func(id string) error {
				e, err := to(ctx, s, id)
				if err != nil {
					return err
				}
				return p.printChanged(webhookapi.Show(e), done)
			})
		})
	}
	return cmd
}

func (p *program) pauseCommand() *cobra.Command {
	var reason string
	cmd := p.stateCommand(&cobra.Command{
		Use:   "pause ID...",
		Short: "Hold the deliveries of endpoints until they are enabled",
	}, "paused", func(ctx context.Context, s *session, id string) (endpoints.Entry, error) {
		if err := webhook.StatePaused.Check(reason); err != nil {
			return endpoints.Entry{}, cli.Refuse("--reason: %w", err)
		}
		return s.registry.Pause(ctx, id, reason)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "`words` for whoever looks at the endpoint")
	return cmd
}

func (p *program) disableCommand() *cobra.Command {
	var reason string
	cmd := p.stateCommand(&cobra.Command{
		Use:   "disable ID...",
		Short: "Disable endpoints: like pause, and they are shown as disabled",
		Long: `Disables endpoints. Their deliveries are held until they are enabled. One that is disabled already keeps its reason.

The reasons gone and failing are those of endpoints that a worker has disabled, and are refused: to have dead letters made of what waits, delete the endpoint.`,
	}, "disabled", func(ctx context.Context, s *session, id string) (endpoints.Entry, error) {
		if err := webhook.StateDisabled.Check(reason); err != nil {
			return endpoints.Entry{}, cli.Refuse("--reason: %w", err)
		}
		e, _, err := s.registry.Disable(ctx, id, cmp.Or(reason, webhookapi.ByOperator))
		return e, err
	})
	cmd.Flags().StringVar(&reason, "reason", "", "`words` for whoever looks at the endpoint")
	return cmd
}

func (p *program) enableCommand() *cobra.Command {
	return p.stateCommand(&cobra.Command{
		Use:   "enable ID...",
		Short: "Make endpoints active; what was held for them is released",
	}, "enabled", func(ctx context.Context, s *session, id string) (endpoints.Entry, error) {
		return s.registry.Enable(ctx, id)
	})
}

func (p *program) deleteCommand() *cobra.Command {
	var yes bool
	var revision int64
	cmd := &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete endpoints; their waiting deliveries become dead letters",
		Args:  cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if cmd.Flags().Changed("if-revision") && (revision < 1 || len(ids) > 1) {
				return cli.Refuse("--if-revision: give the revision that %s endpoints show prints, and one endpoint", p.Name)
			}
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error {
				if err := cli.Confirm(ctx, p.IO, yes, deleteQuestion(ids), p.Name+" endpoints show"); err != nil {
					return err
				}
				return p.each(ids, func(id string) error {
					if err := s.registry.Delete(ctx, id, revision); err != nil {
						return err
					}
					return p.printDeleted(id)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().Int64Var(&revision, "if-revision", 0, "refuse if the endpoint has another `revision` by now")
	return cmd
}

func deleteQuestion(ids []string) string {
	what := "endpoint " + ids[0]
	if len(ids) > 1 {
		what = fmt.Sprintf("%d endpoints (%s)", len(ids), cli.Cut(strings.Join(ids, ", "), 200))
	}
	return "Delete " + cli.OneLine(what) + " for good? Deliveries that wait for it become dead letters, and its secret is lost."
}

func (p *program) printDeleted(id string) error {
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, map[string]string{"deleted": id})
	}
	_, err := fmt.Fprintln(p.IO.Out, "deleted "+id)
	return err
}
