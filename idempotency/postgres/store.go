package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// Store is an [idempotency.Store] in PostgreSQL. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	cfg      Config
	sql      *statements
	gens     pgdb.Generations
	prepares bool
	clock    clock
	lane     *batcher[item]
	orphans  orphanedClaims
	joins    joins
	trips    atomic.Int64
}

var _ idempotency.Store = (*Store)(nil)

// New returns the store in the tables that the migrations have made. It does not ask the database yet. The caller closes the store, then the
// pool, which should have four connections or more.
func New(pool *pgxpool.Pool, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	joins, err := newJoins(pool, cfg.Transactions, cfg.TxOptions)
	if err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	const needed = "expires IS NULL OR expires > {now}"
	s := &Store{pool: pool, cfg: cfg, joins: joins, gens: pgdb.Generations{
		Pool: pool, Schema: cfg.Schema, Family: "claims", Every: cfg.Generation, Keep: cfg.Keep, Clock: cfg.clock,
		Tables: []pgdb.GenerationTable{{Name: "claims", Needed: needed}, {Name: "runs", Needed: needed}},
	}}
	switch pool.Config().ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec:
		s.prepares = true
	}
	s.sql = newStatements(cfg.Schema, cfg.clock, s.gens)
	s.lane = &batcher[item]{answer: s.answerBatch, astray: s.orphans.abandoned, max: cfg.MaxBatch, crowd: crowd}
	return s, nil
}

// crowd is how many waiting items start a second batch.
const crowd = 96

// Close waits for the calls that are under way. Later ones answer [idempotency.ErrUnavailable].
func (s *Store) Close() { s.lane.close() }

// RoundTrips counts the round trips to the database so far, without those that make connections.
func (s *Store) RoundTrips() int64 { return s.trips.Load() }

// batchContext is the context of a batch, which serves callers with contexts of their own.
func (s *Store) batchContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.cfg.CallTimeout)
}

// refused says that the server did not like a statement or a value.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && !pgdb.Unreached(err)
}

// classify marks errors after which a call may be repeated.
func classify(err error) error {
	if pgdb.Unreached(err) || errors.Is(err, context.Canceled) {
		return unavailable(err)
	}
	return err
}

// Ping returns nil while the database takes claims: it writes, and a standby refuses.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.giveBack(ctx); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	err := s.repeat(ctx, func(conn *pgx.Conn, _ bool) error {
		t := s.roundTrip(conn)
		var newest int64
		err := errors.Join(t.begin(ctx), t.lock(ctx), t.add(ctx, &s.sql.ping, nil, nil), t.add(ctx, &s.sql.now, nil, func(c [][]byte) error {
			newest = readInt(c[1])
			return nil
		}), t.commit(ctx))
		if err != nil {
			return err
		}
		if err := t.send(ctx); err != nil {
			return err
		}
		if newest == 0 {
			return fmt.Errorf("schema %q has no generation of claims: run `worker migrate up`", s.cfg.Schema)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ping: %w", classify(err))
	}
	return nil
}

// Expire drops the records of generations whose time is over, whatever limit says, and returns how many they were. Any number of
// processes may call it at once: it opens the generations, too.
func (s *Store) Expire(ctx context.Context, _ int) (int, error) {
	if _, err := s.gens.Advance(ctx); err != nil {
		return 0, classify(err)
	}
	removed, err := s.gens.Drop(ctx)
	if err != nil {
		return 0, classify(err)
	}
	return int(removed), nil
}
