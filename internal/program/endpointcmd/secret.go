package endpointcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
)

func (p *program) rotateCommand() *cobra.Command {
	var secretFile, window string
	cmd := &cobra.Command{
		Use:   "rotate-secret ID",
		Short: "Give an endpoint a new secret and print it, this once",
		Long: `Gives an endpoint a new signing secret and prints it. The old one signs beside it for the window, so that receivers have time to follow; with
--window 0s it is retired at once.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := windowOf(window)
			if err != nil {
				return cli.Refuse("--window: %w", err)
			}
			var secret signature.Secret
			if cmd.Flags().Changed("secret-file") {
				text, err := p.secretText(secretFile)
				if err == nil {
					secret, err = signature.ParseSecret(text)
				}
				if err != nil {
					return cli.Refuse("--secret-file: %w", err)
				}
			}
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error {
				e, err := s.registry.RotateSecret(ctx, args[0], secret, d)
				if err != nil {
					return err
				}
				return p.printNew(webhookapi.ShowNew(e), "rotated the secret of")
			})
		},
	}
	cmd.Flags().StringVar(&window, "window", schedule.FormatDuration(webhookapi.DefaultWindow), "`duration` for which the old secret still signs")
	cmd.Flags().StringVar(&secretFile, "secret-file", "", "`file` with the new secret, - for standard input; without it one is made")
	return cmd
}

func windowOf(text string) (time.Duration, error) {
	d, err := schedule.ParseDuration(text)
	switch {
	case err != nil:
		return 0, err
	case d < 0 || d > webhookapi.MaxWindow:
		return 0, fmt.Errorf("%s: use 0s to %s", text, schedule.FormatDuration(webhookapi.MaxWindow))
	}
	return d, nil
}

func (p *program) newKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new-key",
		Short: "Print a new key for webhook.secret_key",
		Long: `Prints a new key that seals what is secret of the registry's endpoints. Keep it where other secrets of the workers are: without it endpoints
cannot be read any more.

To replace a key, one step after the other, each in all programs before the next: give the new one as one of webhook.old_secret_keys (or its file as one of
webhook.old_secret_key_files); make it webhook.secret_key and the old one an old key; run reseal; leave the old one out.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if p.Settings.JSON {
				return cli.JSON(p.IO.Out, map[string]string{"key": endpoints.NewKey()})
			}
			_, err := fmt.Fprintln(p.IO.Out, endpoints.NewKey())
			return err
		},
	}
}

func (p *program) resealCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reseal",
		Short: "Seal endpoints that an old key sealed with the current one",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error {
				n, err := s.registry.Reseal(ctx)
				if err != nil && n > 0 {
					err = cli.Fail(cli.Partial, fmt.Errorf("sealed %s anew, and then: %w", cli.Count(n, "endpoint"), err))
				}
				if err != nil {
					return err
				}
				if p.Settings.JSON {
					return cli.JSON(p.IO.Out, map[string]int{"resealed": n})
				}
				_, err = fmt.Fprintf(p.IO.Out, "sealed %s anew; all are sealed with the current key\n", cli.Count(n, "endpoint"))
				return err
			})
		},
	}
}
