package runcmd

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/runtime"
	"github.com/caisson-go/caisson/worker"
)

func (p *program) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Work the queues until a signal comes",
		Long: `Works the queues until SIGINT or SIGTERM comes.

Stopping takes at most stop.grace (running jobs finish) and stop.hard (jobs whose contexts were cancelled return), 2 s to settle what
is left, and some seconds more where a broker does not answer. Jobs that have not started are given back at once, and no stop spends an attempt. A handler that still has not returned is
abandoned: its job is given back, the log names it, and the exit code is 3. A second signal exits at once with code 130, unless it comes within half a second of the first.

The admin server answers /healthz, /readyz and /metrics at admin.addr and, where there is a registry of webhook endpoints and admin.user and
admin.password are set, the API under /v1/.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.Load(cmd)
			if err != nil {
				return err
			}
			return p.run(cmd.Context(), cfg)
		},
	}
	p.Settings.Bind(cmd.Flags(), "queues", "queues", "`names` of queues to work, separated by commas, as name or name=weight")
	p.Settings.Bind(cmd.Flags(), "concurrency", "concurrency", "how `many` jobs run at once")
	p.Settings.Bind(cmd.Flags(), "admin-addr", "admin.addr", "`host:port` of the admin server, or off")
	p.Settings.Bind(cmd.Flags(), "stop-grace", "stop.grace", "`duration` that running jobs may finish in after the first signal")
	return cmd
}

// run works until ctx ends.
func (p *program) run(ctx context.Context, cfg *config.Config) (err error) {
	// Caught and never read: a log whose reader is gone fails to be written, instead of ending the process in the middle of its jobs.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	r, err := runtime.Open(ctx, p.runtime(cfg))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	logger := cli.Logger(cfg, p.IO)
	defer context.AfterFunc(ctx, func() {
		logger.Info("stopping: running jobs may finish; a second signal exits at once", "grace", cfg.Stop.Grace, "hard", cfg.Stop.Hard)
	})()
	start := time.Now()
	err = r.Run(ctx)
	logger.Info("worker stopped", "ran", time.Since(start).Round(time.Millisecond))
	if errors.As(err, new(*worker.AbandonedError)) {
		return cli.Fail(cli.Abandoned, err)
	}
	return err
}
