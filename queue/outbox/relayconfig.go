package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/migrations"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/schedule"
)

// Broker is what a relay needs of a [queue.Broker].
type Broker interface {
	Capabilities(queue string) queue.Capabilities
	Publish(ctx context.Context, queue string, pubs []queue.Publication) []queue.PublishResult
}

// RelayConfig configures a relay.
type RelayConfig struct {
	// Pool of connections to the database; may lead through a pooler in transaction mode. Required. It uses at most Parallel + 1 of them, and
	// the relay does not close it.
	Pool *pgxpool.Pool
	// Schema that holds the tables of package migrations. Default "caisson".
	Schema string
	// Broker to publish to. Required. The relay does not close it.
	Broker Broker
	// DirectURL of the database, past any pooler, for one connection that listens. Empty means that jobs are found by polling alone. It may
	// hold a password and is never logged.
	DirectURL string
	// Poll is how long an idle relay waits before it looks again. Default 1 s. With DirectURL it is only the net under lost notifications.
	Poll time.Duration
	// Batch is the most jobs that the relay has read and not yet deleted, all loops together: as many may be published twice after a crash.
	// Default 1000, at least twice Parallel.
	Batch int
	// Parallel is how many loops read and publish side by side. Default 4, at most 16.
	Parallel int
	// Lease is for how long a relay has a shard to itself. A relay that is killed blocks its shards for that long. Default 30 s, at least 1 s.
	Lease time.Duration
	// PublishTimeout bounds one call of the broker. Default 10 s, at most half of Lease.
	PublishTimeout time.Duration
	// MaxAttempts is how often a job is offered to a broker that refuses it, the first time included, before it is parked: kept, counted
	// as stuck and not tried again until [Box.Retry]. Default 20. A broker that is away, blocked or closed costs no attempt.
	MaxAttempts int
	// Backoff gives the delay after a refusal. Default 1 s, doubled each time up to 5 min, which parks a job after about 1 hour.
	Backoff schedule.Backoff
	// Observer is told of every call of the broker. Optional.
	Observer Observer
	// Logger gets what an operator should read. Default slog.Default().
	Logger *slog.Logger
}

// Observer is told what a relay does. Observe is called from several goroutines at once and must be quick.
type Observer interface {
	Observe(Event)
}

// Event is what became of the jobs of one call of the broker.
type Event struct {
	Queue string
	// Published jobs were confirmed.
	Published int
	// Refused jobs wait for another attempt, or are parked.
	Refused int
	// Parked are those of Refused that had their last attempt.
	Parked int
	// Unavailable says that the queue takes nothing at present; what was not published stays as it is.
	Unavailable bool
	// Err is one of the errors, nil if all were published.
	Err error
}

var defaultBackoff = func() schedule.Backoff {
	p, err := schedule.Exponential(time.Second, 2, 5*time.Minute, schedule.JitterEqual)
	if err != nil {
		panic(err) // constants
	}
	return p
}()

func (c RelayConfig) withDefaults() RelayConfig {
	c.Schema = cmp.Or(c.Schema, migrations.DefaultSchema)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Batch = cmp.Or(c.Batch, 1000)
	c.Parallel = cmp.Or(c.Parallel, max(min(4, c.Batch/2), 1))
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, min(10*time.Second, c.Lease/2))
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 20)
	if c.Backoff.IsZero() {
		c.Backoff = defaultBackoff
	}
	c.Logger = cmp.Or(c.Logger, slog.Default()) //nolint:sloglint // the default of an optional logger
	return c
}

func (c RelayConfig) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Pool != nil, "pool is required: open one with pgxpool.New")
	check(c.Broker != nil, "broker is required")
	check(c.Poll > 0, "poll %s: must be positive", c.Poll)
	check(c.Parallel >= 1 && c.Parallel <= 16, "parallel %d: must be between 1 and 16", c.Parallel)
	check(c.Batch >= 2*c.Parallel && c.Batch <= 100_000, "batch %d: must be between twice parallel (%d) and 100000", c.Batch, c.Parallel)
	check(c.Lease >= time.Second, "lease %s: must be at least 1s", c.Lease)
	check(c.PublishTimeout > 0 && c.PublishTimeout <= c.Lease/2, "publish timeout %s: must be positive and at most half of the lease %s", c.PublishTimeout, c.Lease)
	check(c.MaxAttempts >= 1, "max attempts %d: must be at least 1, the first attempt included", c.MaxAttempts)
	return errors.Join(errs...)
}

// direct reads DirectURL. The error does not show it.
func (c RelayConfig) direct() (*pgx.ConnConfig, error) {
	if c.DirectURL == "" {
		return nil, nil
	}
	direct, err := pgx.ParseConfig(c.DirectURL)
	if err != nil {
		return nil, errors.New("direct URL (not shown, it may hold a password): write postgres://user:password@host:5432/database")
	}
	if direct.ConnectTimeout == 0 {
		direct.ConnectTimeout = 5 * time.Second
	}
	direct.RuntimeParams["application_name"] = "caisson outbox"
	return direct, nil
}
