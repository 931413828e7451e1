package runcmd

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/runtime"
)

func (p *program) relayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Publish what was enqueued in transactions, until a signal comes",
		Long: `Publishes the jobs that transactions have left in the outbox (the store postgres) to the broker, until SIGINT or SIGTERM comes. It runs no jobs.
Any number of relays may run at once, here and in workers with outbox.relay; one that is killed loses nothing.

The admin server answers /healthz, /readyz and /metrics at admin.addr.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: p.relay,
	}
	p.Settings.Bind(cmd.Flags(), "admin-addr", "admin.addr", "`host:port` of the admin server, or off")
	return cmd
}

func (p *program) relay(cmd *cobra.Command, _ []string) (err error) {
	cfg, err := p.Load(cmd)
	if err != nil {
		return err
	}
	r, err := runtime.OpenRelay(cmd.Context(), p.runtime(cfg))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	start := time.Now()
	err = r.Run(cmd.Context())
	cli.Logger(cfg, p.IO).Info("relay stopped", "ran", time.Since(start).Round(time.Millisecond))
	return err
}
