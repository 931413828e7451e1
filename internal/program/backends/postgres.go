package backends

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	dlqpg "github.com/caisson-go/caisson/dlq/postgres"
	claimpg "github.com/caisson-go/caisson/idempotency/postgres"
	fleetpg "github.com/caisson-go/caisson/internal/fleet/postgres"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/migrations"
	"github.com/caisson-go/caisson/queue/outbox"
	endpointpg "github.com/caisson-go/caisson/webhook/endpoints/postgres"
	journalpg "github.com/caisson-go/caisson/webhook/journal/postgres"
)

// Postgres is the database of the store postgres.
type Postgres struct {
	Pool *pgxpool.Pool
	// Schema holds the tables.
	Schema string
	// At says where it is, without user and password.
	At string

	answer answer
}

// OpenPostgres opens the database that cfg names, and asks it nothing: it may be away, and its tables may be missing. The caller closes it.
func OpenPostgres(ctx context.Context, cfg *config.Config) (*Postgres, error) {
	if cfg.ClaimStore() != config.StorePostgres {
		return nil, fmt.Errorf("the store is %s: set postgres.url, and store to auto or postgres", cfg.ClaimStore())
	}
	pool, err := pgdb.Open(ctx, databaseOf(cfg, cfg.Postgres.URL.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("postgres.url: %w", err)
	}
	return &Postgres{Pool: pool, Schema: cfg.Postgres.Schema, At: pgdb.Address(cfg.Postgres.URL.Reveal())}, nil
}

func databaseOf(cfg *config.Config, url string) pgdb.Config {
	c := cfg.Postgres
	return pgdb.Config{URL: url, Pooler: c.Pooler, MaxConns: c.MaxConns, ConnectTimeout: c.ConnectTimeout, StatementTimeout: c.StatementTimeout}
}

// Close waits until no connection is in use.
func (p *Postgres) Close() error {
	p.Pool.Close()
	return nil
}

// Connections is how the pool is used.
type Connections struct {
	InUse, Idle, Most int
	// Waits is how often a caller waited for a connection, and Waited for how long in all.
	Waits  int64
	Waited time.Duration
}

// Connections counts those of the pool.
func (p *Postgres) Connections() Connections {
	s := p.Pool.Stat()
	return Connections{
		InUse: int(s.AcquiredConns()), Idle: int(s.IdleConns()), Most: int(s.MaxConns()), Waits: s.EmptyAcquireCount(), Waited: s.EmptyAcquireWaitTime(),
	}
}

// ask bounds one question of Await.
const ask = 10 * time.Second

// repeat is how often the log says that the database is still away.
const repeat = 30 * time.Second

// awayError means that a database did not answer until a context ended.
type awayError struct {
	at  string
	err error
}

func (e *awayError) Error() string {
	return fmt.Sprintf("postgres at %s does not answer: %v", e.at, e.err)
}

func (e *awayError) Unwrap() error { return e.err }

// Await returns nil once the database answers and has the tables that this program knows. It waits for one that is away until ctx is done; what no
// waiting mends, such as a wrong password or tables of another version ([migrations.Refuses]), it returns at once.
func (p *Postgres) Await(ctx context.Context, logger *slog.Logger) error {
	var told time.Time
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := p.check(ctx)
		switch {
		case err == nil:
			if !told.IsZero() {
				logger.Info("postgres answers", "at", p.At)
			}
			return nil
		case ctx.Err() != nil:
			return &awayError{p.At, err}
		case !pgdb.Unavailable(err):
			return fmt.Errorf("postgres at %s: %w", p.At, err)
		}
		if now := time.Now(); now.Sub(told) >= repeat {
			told = now
			logger.Warn("postgres does not answer: waiting for it", "at", p.At, "error", err)
		}
		select {
		case <-ctx.Done():
			return &awayError{p.At, err}
		case <-time.After(pause):
		}
	}
}

// Answers returns nil once the database answers, whatever tables it has, and gives up after wait.
func (p *Postgres) Answers(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := p.Await(ctx, slog.New(slog.DiscardHandler))
	if migrations.Refuses(err) {
		return nil
	}
	return err
}

func (p *Postgres) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	return migrations.Check(ctx, p.Pool, p.Schema)
}

// answer remembers what the last question found.
type answer struct {
	mu    sync.Mutex
	asked time.Time
	err   error
}

// answerFor is how long an answer of Ready holds.
const answerFor = 2 * time.Second

// readyAsk bounds the query of Ready, since a caller waits for it.
const readyAsk = 3 * time.Second

// Ready returns nil while the database answers and its tables are of this program's version: somebody may migrate beside a worker. It asks every
// two seconds at most.
func (p *Postgres) Ready(ctx context.Context) error {
	p.answer.mu.Lock()
	defer p.answer.mu.Unlock()
	if time.Since(p.answer.asked) < answerFor {
		return p.answer.err
	}
	within, cancel := context.WithTimeout(ctx, readyAsk)
	defer cancel()
	err := p.check(within)
	if ctx.Err() != nil {
		return err // the caller has gone, and nothing is known
	}
	if err != nil && !migrations.Refuses(err) {
		err = &awayError{p.At, err}
	}
	p.answer.asked, p.answer.err = time.Now(), err
	return err
}

// checkPostgres refuses what opening would refuse, and connects to nothing.
func checkPostgres(cfg *config.Config) error {
	var errs []error
	for key, url := range map[string]config.Secret{"postgres.url": cfg.Postgres.URL, "postgres.direct_url": cfg.Postgres.DirectURL} {
		if url.IsZero() {
			continue
		}
		if err := databaseOf(cfg, url.Reveal()).Check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// keepPostgres waits for the database, and puts claims, dead letters and the status store there.
func (s *Set) keepPostgres(ctx context.Context, cfg *config.Config, logger *slog.Logger) error {
	db, err := OpenPostgres(ctx, cfg)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, db.Close)
	if err := db.Await(ctx, logger); err != nil {
		return err
	}
	return s.onPostgres(cfg, db)
}

// offlinePostgres is keepPostgres on a database that is never asked.
func (s *Set) offlinePostgres(ctx context.Context, cfg *config.Config) error {
	if err := checkPostgres(cfg); err != nil {
		return err
	}
	db, err := OpenPostgres(ctx, cfg)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, db.Close)
	return s.onPostgres(cfg, db)
}

func (s *Set) onPostgres(cfg *config.Config, db *Postgres) error {
	s.Postgres = db
	keep := cfg.Idempotency.Retention
	claims, err := claimpg.New(db.Pool, claimpg.Config{
		Schema: db.Schema, Keep: keep, Generation: min(keep/2, 24*time.Hour), Transactions: cfg.Postgres.Transactions,
	})
	if err != nil {
		return err
	}
	s.Claims = claims
	s.closers = append(s.closers, func() error { claims.Close(); return nil })
	if cfg.DLQBackend() == config.DLQStore {
		letters, err := dlqpg.New(db.Pool, dlqpg.Config{Schema: db.Schema})
		if err != nil {
			return err
		}
		s.DeadLetters, s.Letters = letters, letters
	}
	events, err := journalpg.New(db.Pool, journalpg.Config{Schema: db.Schema})
	if err != nil {
		return err
	}
	s.Endpoints, s.Journal, s.Queues = endpointpg.New(db.Pool, endpointpg.Config{Schema: db.Schema}), events, events
	s.Statuses = fleetpg.New(db.Pool, fleetpg.Config{Schema: db.Schema})
	return nil
}

// relayConns is how many connections a relay has to itself, so that it takes none from claims: one for each loop, one for housekeeping, and
// one for counting.
const (
	relayLoops = 4
	relayConns = relayLoops + 2
)

// Relay returns a relay of the outbox to the set's broker, and the pool of its own, which the caller closes once it has run.
func (s *Set) Relay(ctx context.Context, cfg *config.Config, observer outbox.Observer, logger *slog.Logger) (*outbox.Relay, *pgxpool.Pool, error) {
	if s.Postgres == nil {
		return nil, nil, errors.New("the outbox needs the store postgres: set postgres.url")
	}
	c := databaseOf(cfg, cfg.Postgres.URL.Reveal())
	c.MaxConns, c.Name = relayConns, "caisson relay"
	pool, err := pgdb.Open(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Pool: pool, Schema: s.Postgres.Schema, Broker: s.Broker, DirectURL: cfg.Postgres.Channel(), Parallel: relayLoops, Observer: observer, Logger: logger,
	})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return relay, pool, nil
}
