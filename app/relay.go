package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/admin"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/stack"
	"github.com/caisson-go/caisson/queue/outbox"
)

func (p *program) relayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Publish what was enqueued in transactions, until a signal comes",
		Long: `Publishes the jobs that transactions have left in the outbox (the store postgres) to the broker, until SIGINT or SIGTERM comes. It runs no jobs.
Any number of relays may run at once, here and in workers with outbox.relay; one that is killed loses nothing.

The admin server answers /healthz, /readyz and /metrics at admin.addr.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.settings.Load(cmd, p.io)
			if err != nil {
				return err
			}
			return p.relay(cmd.Context(), cfg)
		},
	}
	p.settings.Bind(cmd.Flags(), "admin-addr", "admin.addr", "`host:port` of the admin server, or off")
	return cmd
}

func (p *program) relay(ctx context.Context, cfg *config.Config) error {
	if cfg.ClaimStore() != config.StorePostgres {
		return cli.Refuse("the outbox is a table of the store postgres, and the store is %s: set postgres.url", cfg.ClaimStore())
	}
	if s, err := stack.Offline(ctx, cfg); err != nil {
		return cli.Fail(cli.Usage, err)
	} else if err := s.Close(); err != nil {
		return err
	}
	logger := cli.Logger(cfg, p.io)
	site := newSite(cfg)
	server, err := listen(ctx, cfg, logger, site)
	if err != nil {
		return err
	}
	start := time.Now()
	err = serve(ctx, server, func(ctx context.Context) error { return site.relayAlone(ctx, logger, server) })
	logger.Info("relay stopped", "ran", time.Since(start).Round(time.Millisecond))
	return err
}

// relayAlone opens the stack and relays until ctx ends.
func (s *site) relayAlone(ctx context.Context, logger *slog.Logger, server *admin.Server) (err error) {
	open, err := s.open(ctx, logger)
	if err != nil || open == nil {
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	s.is(open, func() error { return nil })
	attrs := append([]any{"version", buildInfo().Version}, placeAttrs(s.cfg)...)
	if server != nil {
		attrs = append(attrs, "admin", server.Addr().String())
	}
	logger.Info("relay starts", attrs...)
	return s.relay(ctx, open, logger)
}

// relay publishes from the outbox until ctx is done.
func (s *site) relay(ctx context.Context, open *stack.Stack, logger *slog.Logger) error {
	relay, pool, err := open.Relay(ctx, s.cfg, s.metrics.outbox(), logger)
	if err != nil {
		return err
	}
	defer pool.Close()
	counting, stop := context.WithCancel(ctx)
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		s.countOutbox(counting, pool, open.Postgres.Schema)
	}()
	defer func() {
		stop()
		<-counted
	}()
	return relay.Run(ctx)
}

// countEvery is how often the outbox is counted, countWithin how long that may take, and countShare the most of a database session's
// time that goes into it.
const (
	countEvery  = 15 * time.Second
	countWithin = 10 * time.Second
	countShare  = 0.05
)

// countOutbox keeps the gauges of the outbox until ctx is done. While the database is away they are absent; an outbox that is too large to be
// counted in time keeps those of before.
func (s *site) countOutbox(ctx context.Context, pool *pgxpool.Pool, schema string) {
	gauges := s.metrics.backlog()
	defer gauges.clear()
	box, err := outbox.New(outbox.Config{Schema: schema})
	if err != nil {
		return
	}
	for {
		start := time.Now()
		within, cancel := context.WithTimeout(ctx, countWithin)
		stats, err := box.Stats(within, pool)
		late := within.Err() != nil
		cancel()
		switch {
		case err == nil:
			gauges.set(stats)
		case !late:
			gauges.clear()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(countEvery, time.Duration(float64(time.Since(start))/countShare))):
		}
	}
}
