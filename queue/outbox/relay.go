package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/queue"
)

// Relay publishes what transactions have enqueued. Any number of them may run, in one process or many.
type Relay struct {
	cfg      RelayConfig
	sql      statements
	direct   *pgx.ConnConfig // nil without DirectURL
	pauses   *pauses
	pacing   *pacing
	wake     chan struct{} // one place: somebody should look
	turnSize int64
	bytes    int // of bodies that a loop reads, unless a single one is larger
}

// NewRelay returns a relay. It asks the database nothing.
func NewRelay(cfg RelayConfig) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("outbox relay: %w", err)
	}
	direct, err := cfg.direct()
	if err != nil {
		return nil, fmt.Errorf("outbox relay: %w", err)
	}
	return &Relay{
		cfg: cfg, sql: statementsOf(cfg.Schema), direct: direct, pauses: newPauses(), pacing: &pacing{},
		wake: make(chan struct{}, 1), turnSize: turnSize, bytes: cycleBytes,
	}, nil
}

// Run relays until ctx is done, and then returns nil once what was being published is settled: after [RelayConfig.PublishTimeout] and a few
// seconds at the latest. It outlives a database or broker that is away. Once the broker is closed, it returns an error that wraps
// [queue.ErrClosed]. Run may be called once at a time.
func (r *Relay) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for range r.cfg.Parallel {
		g.Go(func() error { return r.loop(ctx) })
	}
	g.Go(func() error { r.housekeep(ctx); return nil })
	if r.direct != nil {
		g.Go(func() error { r.listen(ctx); return nil })
	}
	return g.Wait()
}

// notify has one idle loop look.
func (r *Relay) notify() {
	select {
	case r.wake <- struct{}{}:
	default: // somebody will look anyway
	}
}

// loop publishes batch by batch while there is something, and waits while there is not.
func (r *Relay) loop(ctx context.Context) error {
	failures, streak := 0, 0
	for ctx.Err() == nil {
		found, next, err := r.cycle(ctx)
		switch {
		case errors.Is(err, queue.ErrClosed):
			return fmt.Errorf("outbox relay: %w", err)
		case err != nil && ctx.Err() == nil:
			failures++
			if failures == 1 || !pgdb.Unavailable(err) {
				r.cfg.Logger.WarnContext(ctx, "outbox relay cannot work with the database", "schema", r.cfg.Schema, "error", err)
			}
			pause.For(ctx, growing(failures))
		case err == nil && failures > 0:
			failures = 0
			r.cfg.Logger.InfoContext(ctx, "outbox relay works with the database again", "schema", r.cfg.Schema)
		}
		switch {
		case err != nil:
		case found:
			streak++
			if r.direct != nil && r.pacing.busy(streak, time.Now()) {
				r.disarm(ctx)
			}
		default:
			streak = 0
			r.idle(ctx, next)
		}
	}
	return nil
}

// idle waits for a notification, for the next poll, or until next has passed. Zero means that nothing is known to come.
func (r *Relay) idle(ctx context.Context, next time.Duration) {
	poll := r.cfg.Poll
	if r.direct != nil {
		arm, soon := r.pacing.idle(time.Now())
		if arm && r.arm(ctx) {
			return // look once more: what did not notify may have committed
		}
		if soon > 0 {
			poll = min(poll, soon)
		}
	}
	wait := poll/2 + rand.N(poll/2+1) // so that loops do not look all at once
	if next > 0 {
		wait = min(wait, next)
	}
	if left := r.pauses.next(time.Now()); left > 0 {
		wait = min(wait, left)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.wake:
	case <-timer.C:
	}
}

// housekeeping is how often the tables are looked after.
const housekeeping = 2 * time.Second

func (r *Relay) housekeep(ctx context.Context) {
	failed := false
	for round := 1; pause.For(ctx, housekeeping/2+rand.N(housekeeping)); round++ {
		if r.direct != nil {
			r.renew(ctx)
		}
		err := r.tidy(ctx)
		if err == nil && round%30 == 0 { // about once a minute: a net under what relays do for the keys that they handle
			_, err = r.cfg.Pool.Exec(ctx, r.sql.orphans)
		}
		if err != nil && !pgdb.Unavailable(err) && !failed && ctx.Err() == nil {
			failed = true // the tables grow as ordinary ones do: autovacuum is the net
			r.cfg.Logger.WarnContext(ctx, "outbox relay cannot tidy its tables: it needs the right to update and truncate them", "schema", r.cfg.Schema, "error", err)
		}
	}
}

// growing is the pause after that many failures in a row: from 100 ms up to 5 s, with jitter.
func growing(failures int) time.Duration {
	d := min(100*time.Millisecond<<min(failures-1, 6), 5*time.Second)
	return d/2 + rand.N(d/2)
}
