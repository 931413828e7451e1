package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/internal/program/admin"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/worker"
)

func (p *program) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Work the queues until a signal comes",
		Long: `Works the queues until SIGINT or SIGTERM comes.

Stopping takes at most stop.grace (running jobs finish) and stop.hard (jobs whose contexts were cancelled return), 2 s to settle what
is left, and some seconds more where a broker does not answer. Jobs that have not started are given back at once, and no stop spends an attempt. A handler that still has not returned is
abandoned: its job is given back, the log names it, and the exit code is 3. A second signal exits at once with code 130.

The admin server answers /healthz, /readyz and /metrics at admin.addr and, where there is a registry of webhook endpoints and admin.user and
admin.password are set, the API under /v1/.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.settings.Load(cmd, p.io)
			if err != nil {
				return err
			}
			return p.run(cmd.Context(), cfg)
		},
	}
	p.settings.Bind(cmd.Flags(), "queues", "queues", "`names` of queues to work, separated by commas, as name or name=weight")
	p.settings.Bind(cmd.Flags(), "concurrency", "concurrency", "how `many` jobs run at once")
	p.settings.Bind(cmd.Flags(), "admin-addr", "admin.addr", "`host:port` of the admin server, or off")
	p.settings.Bind(cmd.Flags(), "stop-grace", "stop.grace", "`duration` that running jobs may finish in after the first signal")
	return cmd
}

// run works until ctx ends. The admin server comes first, so that it tells what is being waited for.
func (p *program) run(ctx context.Context, cfg *config.Config) error {
	// Caught and never read: a log whose reader is gone fails to be written, instead of ending the process in the middle of its jobs.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	defer holdBallast()()
	logger := cli.Logger(cfg, p.io)
	prepared, err := p.prepare(cfg)
	if err != nil {
		return err
	}
	defer prepared.close()
	if err := prepared.check(ctx); err != nil {
		return err // before a file is made for a worker that cannot start
	}
	site := newSite(cfg)
	server, err := listen(ctx, cfg, logger, site)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		logger.Info("stopping: running jobs may finish; a second signal exits at once", "grace", cfg.Stop.Grace, "hard", cfg.Stop.Hard)
	})()
	start := time.Now()
	err = serve(ctx, server, func(ctx context.Context) error { return site.work(ctx, prepared, logger, server) })
	logger.Info("worker stopped", "ran", time.Since(start).Round(time.Millisecond))
	var abandoned *worker.AbandonedError
	if errors.As(err, &abandoned) {
		return cli.Fail(cli.Abandoned, err)
	}
	return err
}

// serve runs work and the admin server. The server outlives the work, so that its stop can be watched; if the server fails, the work stops.
func serve(ctx context.Context, server *admin.Server, work func(context.Context) error) error {
	if server == nil {
		return work(ctx)
	}
	group, working := errgroup.WithContext(ctx)
	watch, stopServer := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServer()
	group.Go(func() error {
		defer stopServer()
		return work(working)
	})
	group.Go(func() error { return server.Run(watch) })
	return group.Wait()
}

// listen opens the admin server, or returns nil if it is off. Several workers on one host all have the default address: where nobody chose
// it, being second is no reason not to work.
func listen(ctx context.Context, cfg *config.Config, logger *slog.Logger, site *site) (*admin.Server, error) {
	if cfg.Admin.Addr == config.Off {
		return nil, nil
	}
	server, err := admin.New(ctx, admin.Config{
		Addr:     cfg.Admin.Addr,
		User:     cfg.Admin.User,
		Password: cfg.Admin.Password.Reveal(),
		Checks:   []admin.Check{{Name: "worker", Probe: site.ready}},
		Metrics:  site.metrics.handler(),
		API:      &site.api,
	})
	if err == nil {
		return server, nil
	}
	for _, s := range cfg.Settings() {
		if s.Key == "admin.addr" && s.Origin == config.Default {
			logger.Warn("no admin server: set admin.addr to a free address, or to off", "error", err)
			return nil, nil
		}
	}
	return nil, fmt.Errorf("admin.addr: %w", err)
}
