package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// migrations are the table's versions. Only append. Times are nanoseconds since 1970.
var migrations = []string{`
CREATE TABLE caisson_fleet (
	id     BLOB    PRIMARY KEY,
	at     INTEGER NOT NULL,
	report BLOB    NOT NULL
) WITHOUT ROWID;
`}

const (
	upsert = `INSERT INTO caisson_fleet (id, at, report) VALUES (?, ?, ?)
	ON CONFLICT (id) DO UPDATE SET at = excluded.at, report = excluded.report`
	removeOld  = `DELETE FROM caisson_fleet WHERE at < ?`
	removeOne  = `DELETE FROM caisson_fleet WHERE id = ?`
	selectLive = `SELECT at, report FROM caisson_fleet WHERE at >= ?`
)

// Store is a [fleet.StatusStore] in a SQLite file. It is safe for concurrent use.
type Store struct{ file *sqlitefile.File }

var _ fleet.StatusStore = (*Store)(nil)

// Open opens the store in a file, whose tables it makes or upgrades.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	file, err := sqlitefile.OpenTables(ctx, sqlitefile.Config{Path: cfg.Path, Sync: sqlitefile.Sync(cfg.Sync)}, "fleet", migrations)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", unavailable(err))
	}
	return &Store{file: file}, nil
}

// Path is what other stores open the same file by, also in memory.
func (b *Store) Path() string { return b.file.Path() }

// Close gives the file back. It closes with the last in this process who has it open.
func (b *Store) Close() error { return b.file.Close() }

// Publish implements [fleet.StatusStore].
func (b *Store) Publish(ctx context.Context, r fleet.Report) error {
	data, err := fleet.Encode(r)
	if err != nil {
		return err
	}
	return unavailable(b.file.Write(ctx, false, func(tx *sqlitefile.Tx) error {
		now := time.Now()
		if _, err := tx.Exec(removeOld, now.Add(-fleet.Live).UnixNano()); err != nil { // a host's few rows: cheaper than keeping count
			return fmt.Errorf("remove old fleet reports: %w", err)
		}
		if _, err := tx.Exec(upsert, []byte(r.ID), now.UnixNano(), data); err != nil {
			return fmt.Errorf("publish fleet report: %w", err)
		}
		return nil
	}))
}

// Reports implements [fleet.StatusStore].
func (b *Store) Reports(ctx context.Context) ([]fleet.Report, error) {
	var reports []fleet.Report
	var unread []error
	err := b.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		reports, unread = nil, nil
		now := time.Now()
		rows, err := tx.Query(selectLive, now.Add(-fleet.Live).UnixNano())
		if err != nil {
			return fmt.Errorf("read fleet reports: %w", err)
		}
		for rows.Next() {
			var at int64
			var data []byte
			if err := rows.Scan(&at, &data); err != nil {
				return fmt.Errorf("read fleet reports: %w", err)
			}
			r, err := fleet.Decode(data, time.Unix(0, at), now)
			if err != nil {
				unread = append(unread, err)
				continue
			}
			reports = append(reports, r)
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return fleet.Sorted(reports), errors.Join(unread...)
}

// Remove implements [fleet.StatusStore].
func (b *Store) Remove(ctx context.Context, id string) error {
	return unavailable(b.file.Write(ctx, false, func(tx *sqlitefile.Tx) error {
		if _, err := tx.Exec(removeOne, []byte(id)); err != nil {
			return fmt.Errorf("remove fleet report: %w", err)
		}
		return nil
	}))
}

// unavailable marks errors after which a call may be repeated.
func unavailable(err error) error {
	if errors.Is(err, sqlitefile.ErrUnavailable) {
		return fmt.Errorf("%w: %w", fleet.ErrUnavailable, err)
	}
	return err
}
