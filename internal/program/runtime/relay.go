package runtime

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue/outbox"
)

// OpenRelay is [Open] for a process that relays the outbox and runs no jobs.
func OpenRelay(ctx context.Context, c Config) (*Runtime, error) {
	c = c.withDefaults()
	if store := c.Settings.ClaimStore(); store != config.StorePostgres {
		return nil, cli.Refuse("the outbox is a table of the store postgres, and the store is %s: set postgres.url", store)
	}
	set, err := backends.Offline(ctx, c.Settings)
	if err != nil {
		return nil, cli.Fail(cli.Usage, err)
	}
	if err := set.Close(); err != nil {
		return nil, err
	}
	return open(ctx, c, nil)
}

// relayAlone relays until ctx ends.
func (r *Runtime) relayAlone(ctx context.Context, set *backends.Set) error {
	r.setProbe(set, func() error { return nil })
	attrs := append([]any{"version", cli.BuildOf().Version}, backendAttrs(r.cfg)...)
	r.logger.Info("relay starts", append(attrs, r.adminAttrs()...)...)
	return r.relay(ctx, set)
}

// relay publishes from the outbox until ctx is done.
func (r *Runtime) relay(ctx context.Context, set *backends.Set) error {
	relay, pool, err := set.Relay(ctx, r.cfg, r.metrics.outbox(), r.logger)
	if err != nil {
		return err
	}
	defer pool.Close()
	counting, stop := context.WithCancel(ctx)
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		r.countOutbox(counting, pool, set.Postgres.Schema)
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
func (r *Runtime) countOutbox(ctx context.Context, pool *pgxpool.Pool, schema string) {
	gauges := r.metrics.backlog()
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
