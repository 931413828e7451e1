package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/migrations"
)

// Store is a [fleet.StatusStore] in PostgreSQL. It is safe for concurrent use.
type Store struct {
	pool                               *pgxpool.Pool
	upsert, remove, removeOld, reports string

	mu    sync.Mutex
	sweep time.Time // when to look for reports of the dead next
}

var _ fleet.StatusStore = (*Store)(nil)

// sweepEvery is how often one publisher looks for reports of workers that died. Its look reads the whole table, which thousands of
// publishers each do.
const sweepEvery = 10 * time.Minute

// Config describes a status store. The zero value is usable.
type Config struct {
	// Schema is where the table is, which package migrations makes. Empty means [migrations.DefaultSchema].
	Schema string
}

// New returns the status store in pool, which the caller keeps and closes. Nothing is asked of the server yet.
func New(pool *pgxpool.Pool, cfg Config) *Store {
	table := pgx.Identifier{cmp.Or(cfg.Schema, migrations.DefaultSchema), "fleet"}.Sanitize()
	return &Store{
		pool: pool,
		upsert: `INSERT INTO ` + table + ` AS f (id, at, report) VALUES ($1::bytea, clock_timestamp(), $2::bytea)
	ON CONFLICT (id) DO UPDATE SET at = excluded.at, report = excluded.report`,
		remove: `DELETE FROM ` + table + ` WHERE id = $1::bytea`,
		removeOld: `DELETE FROM ` + table + ` WHERE id IN (SELECT id FROM ` + table + `
	WHERE at < clock_timestamp() - $1::bigint * interval '1 microsecond' LIMIT 1000 FOR UPDATE SKIP LOCKED)`,
		reports: `SELECT at, clock_timestamp(), report FROM ` + table + `
	WHERE at >= clock_timestamp() - $1::bigint * interval '1 microsecond'`,
	}
}

// Publish implements [fleet.StatusStore].
func (b *Store) Publish(ctx context.Context, r fleet.Report) error {
	data, err := fleet.Encode(r)
	if err != nil {
		return err
	}
	if _, err := b.pool.Exec(ctx, b.upsert, []byte(r.ID), data); err != nil {
		return unavailable("publish fleet report", err)
	}
	if !b.sweepDue(time.Now()) {
		return nil
	}
	if _, err := b.pool.Exec(ctx, b.removeOld, (10 * fleet.Live).Microseconds()); err != nil {
		return unavailable("remove old fleet reports", err)
	}
	return nil
}

// sweepDue says whether to look for the reports of the dead now: the first time soon, so that short-lived workers sweep as well.
func (b *Store) sweepDue(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.sweep.IsZero()
	if !first && now.Before(b.sweep) {
		return false
	}
	wait := sweepEvery
	if first {
		wait = 0
	}
	b.sweep = now.Add(wait + rand.N(sweepEvery)) //nolint:gosec // keeps publishers apart
	return !first
}

// Reports implements [fleet.StatusStore].
func (b *Store) Reports(ctx context.Context) ([]fleet.Report, error) {
	var reports []fleet.Report
	var unread []error
	var at, now time.Time
	var data []byte
	rows, err := b.pool.Query(ctx, b.reports, fleet.Live.Microseconds())
	if err != nil {
		return nil, unavailable("read fleet reports", err)
	}
	_, err = pgx.ForEachRow(rows, []any{&at, &now, &data}, func() error {
		r, err := fleet.Decode(data, at, now)
		if err != nil {
			unread = append(unread, err)
			return nil
		}
		reports = append(reports, r)
		return nil
	})
	if err != nil {
		return nil, unavailable("read fleet reports", err)
	}
	return fleet.Sorted(reports), errors.Join(unread...)
}

// Remove implements [fleet.StatusStore].
func (b *Store) Remove(ctx context.Context, id string) error {
	if _, err := b.pool.Exec(ctx, b.remove, []byte(id)); err != nil {
		return unavailable("remove fleet report", err)
	}
	return nil
}

// unavailable says what failed, and marks errors after which the call may be repeated.
func unavailable(doing string, err error) error {
	if pgdb.Unavailable(err) {
		return fmt.Errorf("%s: %w: %w", doing, fleet.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
