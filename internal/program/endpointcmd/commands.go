package endpointcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Commands returns endpoints and events.
func Commands(shared *cli.Program) []*cobra.Command {
	p := &program{shared}
	registry := cli.Group(&cobra.Command{
		Use:   "endpoints",
		Short: "Look after the webhook endpoints of the registry",
		Long: `Looks after the webhook endpoints that are kept in the store (webhook.registry). Workers see a change within 2 seconds.

An id is an endpoint's own over all tenants: commands that name one take no tenant.

Endpoints of the configuration file are not among them: change them there.`,
	},
		p.addCommand(), p.listCommand(), p.showCommand(), p.editCommand(), p.pauseCommand(), p.enableCommand(), p.disableCommand(),
		p.rotateCommand(), p.testCommand(), p.deleteCommand(), p.importCommand(), p.resealCommand(), p.newKeyCommand(),
		p.attemptsCommand(), p.resendCommand(), p.recoverCommand())
	events := cli.Group(&cobra.Command{Use: "events", Short: "Publish events to the webhook endpoints that want them, and see what became of them"},
		p.publishCommand(), p.listEventsCommand(), p.showEventCommand())
	return []*cobra.Command{registry, events}
}

// program is what the commands share.
type program struct{ *cli.Program }

// session is an open store with its registry.
type session struct {
	cfg      *config.Config
	hooks    *webhooks.Settings
	open     *backends.Set
	registry *endpoints.Registry
}

// needs says what a command needs to be there.
type needs struct {
	// mode says whether a file that is missing is made.
	mode backends.Mode
	// broker says that something is enqueued.
	broker bool
}

// with hands a session to do.
func (p *program) with(cmd *cobra.Command, n needs, do func(ctx context.Context, s *session) error) (err error) {
	cfg, err := p.Load(cmd)
	if err != nil {
		return err
	}
	hooks, err := webhooks.Read(cfg)
	if err != nil {
		return cli.Fail(cli.Usage, err)
	}
	if !cfg.HasRegistry() {
		return cli.Refuse("%w (%s endpoints new-key prints a key)", webhooks.ErrNoRegistry, p.Name)
	}
	opening := backends.OpenStoreSoon
	if n.broker {
		opening = backends.OpenSoon
	}
	open, err := opening(cmd.Context(), cfg, n.mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	registry, err := hooks.Registry(open.Endpoints)
	if err != nil {
		return err
	}
	return p.explained(do(cmd.Context(), &session{cfg, hooks, open, registry}))
}

// explained adds the way out to errors that do not know the commands.
func (p *program) explained(err error) error {
	switch {
	case errors.Is(err, webhook.ErrUnknownEndpoint):
		return fmt.Errorf("%w: see %s endpoints list", err, p.Name)
	case errors.Is(err, endpoints.ErrExists):
		return fmt.Errorf("%w: change it with %s endpoints edit", err, p.Name)
	case errors.Is(err, webhook.ErrBlocked):
		return fmt.Errorf("%w: only public ones are; webhook.allow_cidrs opens others, for all endpoints", err)
	}
	return err
}

// each does something with every id, and tells at the end with which it failed.
func (p *program) each(ids []string, do func(id string) error) error {
	failed := 0
	var first error
	for _, id := range ids {
		if err := do(id); err != nil {
			if len(ids) == 1 {
				return err
			}
			if failed++; first == nil {
				first = err
			}
			fmt.Fprintf(p.IO.Err, "%s: %s\n", cli.OneLine(id), cli.Lines(p.explained(err).Error()))
		}
	}
	switch {
	case failed == 0:
		return nil
	case failed == len(ids):
		return fmt.Errorf("none of %d endpoints was changed; the first: %w", failed, first)
	}
	return cli.Fail(cli.Partial, fmt.Errorf("%d of %d endpoints were not changed", failed, len(ids)))
}
