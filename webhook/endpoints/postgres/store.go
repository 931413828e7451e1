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
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Store is an [endpoints.Store] in PostgreSQL. It is safe for concurrent use and has nothing to close.
type Store struct {
	pool *pgxpool.Pool
	sql  statements
}

var _ endpoints.Store = (*Store)(nil)

// Config describes a store. The zero value is usable.
type Config struct {
	// Schema is where the tables are, which package migrations makes. Empty means [migrations.DefaultSchema].
	Schema string
}

// New returns the store in pool, which the caller keeps and closes. Nothing is asked of the server yet.
func New(pool *pgxpool.Pool, cfg Config) *Store {
	return &Store{pool: pool, sql: newStatements(cmp.Or(cfg.Schema, migrations.DefaultSchema))}
}

// Insert implements [endpoints.Store].
func (s *Store) Insert(ctx context.Context, r endpoints.Record) (kept endpoints.Record, err error) {
	err = s.change(ctx, func(tx pgx.Tx, now time.Time, revision int64) error {
		var batch pgx.Batch
		batch.Queue(s.sql.insert, append(values(r), now, revision)...)
		batch.Queue(s.sql.dropHealth, []byte(r.ID))
		kept, err = s.keep(ctx, tx, &batch, r)
		if errors.Is(err, pgx.ErrNoRows) {
			return endpoints.ErrExists
		}
		return err
	})
	return kept, failed("insert endpoint", err)
}

// Update implements [endpoints.Store].
func (s *Store) Update(ctx context.Context, r endpoints.Record) (kept endpoints.Record, err error) {
	err = s.change(ctx, func(tx pgx.Tx, now time.Time, revision int64) error {
		var batch pgx.Batch
		batch.Queue(s.sql.update, append(values(r), now, revision, r.Revision)...)
		kept, err = s.keep(ctx, tx, &batch, r)
		if errors.Is(err, pgx.ErrNoRows) {
			return s.missed(ctx, tx, r.ID)
		}
		return err
	})
	return kept, failed("update endpoint", err)
}

// keep sends a batch that begins with writing a record, makes the record's fingerprints its own, and returns what was written. All goes in one round
// trip, also where the record turns out not to be written: the transaction undoes the rest.
func (s *Store) keep(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, r endpoints.Record) (kept endpoints.Record, err error) {
	id, marks := []byte(r.ID), r.Fingerprints
	if marks == nil {
		marks = [][]byte{} // NULL would free none
	}
	batch.Queue(s.sql.freeSecrets, id, marks)
	batch.Queue(s.sql.takeSecrets, id, marks)
	batch.Queue(s.sql.lostSecrets, id, marks)
	statements := batch.Len()
	results := tx.SendBatch(ctx, batch)
	defer func() { err = errors.Join(err, results.Close()) }()
	if kept, err = one(results.Query()); err != nil {
		return endpoints.Record{}, err
	}
	for range statements - 2 {
		if _, err := results.Exec(); err != nil {
			return endpoints.Record{}, err
		}
	}
	var lost int
	if err := results.QueryRow().Scan(&lost); err != nil {
		return endpoints.Record{}, err
	}
	if lost > 0 {
		return endpoints.Record{}, endpoints.ErrSecretInUse
	}
	return kept, nil
}

// Delete implements [endpoints.Store].
func (s *Store) Delete(ctx context.Context, id string, revision int64) error {
	return failed("delete endpoint", s.change(ctx, func(tx pgx.Tx, now time.Time, next int64) error {
		tag, err := tx.Exec(ctx, s.sql.bury, []byte(id), now, next, revision)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return s.missed(ctx, tx, id)
		}
		var batch pgx.Batch
		batch.Queue(s.sql.freeSecrets, []byte(id), [][]byte{})
		batch.Queue(s.sql.dropHealth, []byte(id))
		batch.Queue(s.sql.purge, now, endpoints.TombstoneAge.Microseconds())
		return tx.SendBatch(ctx, &batch).Close()
	}))
}

// change runs fn in a transaction that has taken the next revision: nobody else changes an endpoint until it ends, and its statements see all that was
// changed before.
func (s *Store) change(ctx context.Context, fn func(tx pgx.Tx, now time.Time, revision int64) error) error {
	return pgdb.Write(ctx, s.pool, pgdb.BeginWrite, func(tx pgx.Tx) error {
		var revision int64
		var now time.Time
		if err := tx.QueryRow(ctx, s.sql.next).Scan(&revision, &now); err != nil {
			return err
		}
		return fn(tx, now, revision)
	})
}

// conflicts is how often a statement or transaction that lost against another one is repeated. A deadlock needs a report and the removal of old
// tombstones at once; under a stricter isolation than read committed, which a role may have as its default, reports lose against each other.
const conflicts = 20

func again(fn func() error) error {
	for try := 0; ; try++ {
		if err := fn(); !pgdb.Conflict(err) || try == conflicts {
			return err
		}
	}
}

// missed says why a record of some revision was not there.
func (s *Store) missed(ctx context.Context, tx pgx.Tx, id string) error {
	r, err := find(tx.Query(ctx, s.sql.get, []byte(id)))
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: it has revision %d by now: read it again", endpoints.ErrConflict, r.Revision)
}

// failed says what failed, and marks errors after which the call may be repeated. The caller's own end is not the store's.
func failed(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case pgdb.Unavailable(err):
		return fmt.Errorf("%s: %w: %w", doing, endpoints.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
