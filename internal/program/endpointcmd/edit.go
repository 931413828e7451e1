package endpointcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
)

func (p *program) addCommand() *cobra.Command {
	var f fieldFlags
	var secretFile string
	cmd := &cobra.Command{
		Use:   "add ID URL",
		Short: "Add an endpoint and print its secret, this once",
		Long: `Adds an endpoint and prints its signing secret, which no command shows again. The receiver checks signatures with it.

A secret of your own is read from a file or from standard input, never from a flag: --secret-file -.`,
		Example: p.Text(`  PROGRAM endpoints add shop https://shop.example.com/hooks --event 'invoice.*'`),
		Args:    cli.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := f.fields(cmd, false)
			if err != nil {
				return cli.Fail(cli.Usage, err)
			}
			fields["id"], fields["url"] = args[0], args[1]
			if cmd.Flags().Changed("secret-file") {
				if fields["secret"], err = p.secretText(secretFile); err != nil {
					return cli.Fail(cli.Usage, fmt.Errorf("--secret-file: %w", err))
				}
			}
			text, err := document(fields)
			if err != nil {
				return err
			}
			e, err := webhookapi.ParseEndpoint(text)
			if err != nil {
				return cli.Fail(cli.Usage, err)
			}
			return p.with(cmd, needs{mode: backends.Create}, func(ctx context.Context, s *session) error { return p.add(ctx, s, e) })
		},
	}
	f.register(cmd, false)
	cmd.Flags().StringVar(&secretFile, "secret-file", "", "`file` with the signing secret (whsec_... or whsk_...), - for standard input; without it one is made")
	return cmd
}

func (p *program) add(ctx context.Context, s *session, e webhook.Endpoint) error {
	if err := s.hooks.Check(e); err != nil {
		return cli.Fail(cli.Usage, err)
	}
	made, err := s.registry.Add(ctx, e)
	if err != nil {
		return err
	}
	return p.printNew(webhookapi.ShowNew(made), "added")
}

// printNew prints an endpoint with its secret. For people the secret stands alone on standard output, so that it can be piped.
func (p *program) printNew(e webhookapi.NewEndpoint, done string) error {
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, e)
	}
	fmt.Fprintf(p.IO.Err, "%s %s at %s; its secret, which is not shown again:\n", done, e.ID, cli.OneLine(e.Origin))
	if _, err := fmt.Fprintln(p.IO.Out, e.Secret); err != nil {
		return fmt.Errorf("print the secret: %w; rotate it to have another one", err)
	}
	return nil
}

// maxSecretText bounds what is read as a secret.
const maxSecretText = 4 << 10

// secretText reads a secret from a file or standard input.
func (p *program) secretText(path string) (string, error) {
	in := p.IO.In
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSecretText))
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", errors.New("there is no secret in it")
	}
	return secret, nil
}

func (p *program) editCommand() *cobra.Command {
	var f fieldFlags
	var revision int64
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change settings of an endpoint",
		Long: `Changes the settings that flags name and leaves the others. Secrets are changed with rotate-secret, the state with pause, disable and enable.

A --url at another host, port or scheme asks for all headers and the TLS key again, or to take them out, in the same command: what was given for one host is
not sent to another unseen. The tenant cannot be changed.`,
		Example: p.Text(`  PROGRAM endpoints edit shop --rate 10 --header 'X-Tenant=7' --metadata old
  PROGRAM endpoints edit shop --url https://shop.example.com/v2/hooks`),
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := f.fields(cmd, true)
			switch {
			case err != nil:
				return cli.Fail(cli.Usage, err)
			case len(fields) == 0:
				return cli.Refuse("nothing to change: name settings with flags (see %s --help)", cmd.CommandPath())
			case cmd.Flags().Changed("if-revision") && revision < 1:
				return cli.Refuse("--if-revision %d: give the revision that %s endpoints show prints", revision, p.Name)
			}
			text, err := document(fields)
			if err != nil {
				return err
			}
			change, err := webhookapi.ParseChange(text)
			if err != nil {
				return cli.Fail(cli.Usage, err)
			}
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error {
				return p.edit(ctx, s, args[0], revision, change)
			})
		},
	}
	f.register(cmd, true)
	cmd.Flags().Int64Var(&revision, "if-revision", 0, "refuse if the endpoint has another `revision` by now")
	return cmd
}

func (p *program) edit(ctx context.Context, s *session, id string, revision int64, change webhookapi.Change) error {
	var refused error
	e, err := s.registry.Edit(ctx, id, revision, func(e *webhook.Endpoint) error {
		if refused = change.Apply(e); refused == nil {
			refused = s.hooks.Check(*e)
		}
		return refused
	})
	switch {
	case refused != nil:
		return cli.Fail(cli.Usage, refused)
	case err != nil:
		return err
	}
	return p.printChanged(webhookapi.Show(e), "changed")
}

// printChanged says what became of an endpoint.
func (p *program) printChanged(e webhookapi.Endpoint, done string) error {
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, e)
	}
	_, err := fmt.Fprintf(p.IO.Out, "%s %s (revision %d)\n", done, e.ID, e.Revision)
	return err
}
