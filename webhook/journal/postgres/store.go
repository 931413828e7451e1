package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/migrations"
	"github.com/caisson-go/caisson/webhook/journal"
)

// Config describes a store. The zero value is usable.
type Config struct {
	// Schema is where the tables are. Empty means [migrations.DefaultSchema].
	Schema string
	// Generation is how long new rows go to the same partition, and so how much longer than their retention they may stay. All
	// processes should agree. Default 24 h.
	Generation time.Duration
}

func (c Config) withDefaults() Config {
	c.Schema = cmp.Or(c.Schema, migrations.DefaultSchema)
	c.Generation = cmp.Or(c.Generation, 24*time.Hour)
	return c
}

// Store is a [journal.Store] in PostgreSQL. It is safe for concurrent use and has nothing to close.
type Store struct {
	pool *pgxpool.Pool
	cfg  Config
	sql  statements
}

var _ journal.Store = (*Store)(nil)

// New returns the store in pool, which the caller keeps and closes. It asks nothing of the server: package migrations makes the tables
// and checks their version.
func New(pool *pgxpool.Pool, cfg Config) (*Store, error) {
	switch {
	case pool == nil:
		return nil, errors.New("webhook journal: pool is missing")
	case cfg.Generation < 0:
		return nil, fmt.Errorf("webhook journal: generation %v: must not be negative", cfg.Generation)
	}
	cfg = cfg.withDefaults()
	return &Store{pool: pool, cfg: cfg, sql: newStatements(cfg.Schema)}, nil
}

// family describes the generations of one of the tables. No row of an old one is needed.
func (s *Store) family(table string, keep time.Duration) pgdb.Generations {
	return pgdb.Generations{
		Pool: s.pool, Schema: s.cfg.Schema, Family: table, Tables: []pgdb.GenerationTable{{Name: table}}, Every: s.cfg.Generation, Keep: keep,
	}
}

// Expire opens new generations if it is time, and drops those whose rows are all past their retention. So a row stays up to
// [Config.Generation] longer, and attempts twice that: no event outlives the attempts at it.
func (s *Store) Expire(ctx context.Context, events, attempts time.Duration) error {
	var errs []error // one table that is in use keeps no other
	for _, g := range []pgdb.Generations{s.family(eventsTable, events), s.family(attemptsTable, attempts+s.cfg.Generation)} {
		if _, err := g.Advance(ctx); err != nil {
			errs = append(errs, s.failed(err))
			continue
		}
		_, err := g.Drop(ctx)
		errs = append(errs, s.failed(err))
	}
	return errors.Join(errs...)
}

// write runs fn in a transaction that begins with a statement, and again where it lost against another transaction.
func (s *Store) write(ctx context.Context, begin string, fn func(tx pgx.Tx) error) error {
	return s.failed(pgdb.Write(ctx, s.pool, begin, fn))
}

// read runs a query and reads its rows by fn.
func (s *Store) read(ctx context.Context, begin, query string, args []any, fn func(rows pgx.Rows) error) error {
	return s.failed(pgdb.Read(ctx, s.pool, begin, query, args, fn))
}

// failed marks errors after which a call may be repeated.
func (s *Store) failed(err error) error {
	if pgdb.Unavailable(err) && !errors.Is(err, journal.ErrUnavailable) {
		return fmt.Errorf("%w: %w", journal.ErrUnavailable, err)
	}
	return err
}
