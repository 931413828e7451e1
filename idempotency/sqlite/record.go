package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// Get returns what is known of a key.
func (s *Store) Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error) {
	var rec idempotency.Record
	err := s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		r, err := load(tx, key, record.RunID{})
		if err != nil {
			return err
		}
		if !r.Row.Exists {
			return fmt.Errorf("key %q of scope %q: %w", key.Value, key.Scope, idempotency.ErrNotFound)
		}
		rec = r.Known()
		return nil
	})
	return rec, unavailable(err)
}

// Completed reports for each key whether a run of it has completed and is remembered, in one transaction.
func (s *Store) Completed(ctx context.Context, keys []idempotency.Key) ([]bool, error) {
	done := make([]bool, len(keys))
	err := s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		for i, key := range keys {
			r := record.Record{Key: key}
			if _, err := loadKey(tx, &r); err != nil {
				return err
			}
			done[i] = r.Row.Exists && r.Row.State == idempotency.StatusCompleted
		}
		return nil
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return done, nil
}

// Expire removes completed and closed records whose retention is over.
func (s *Store) Expire(ctx context.Context, limit int) (int, error) {
	removed := 0
	err := s.write(ctx, func(tx *sqlitefile.Tx, now time.Time) error {
		removed = 0
		for _, statement := range []string{expireKeys, expireRuns} {
			res, err := tx.Exec(statement, now.UnixNano(), limit-removed)
			if err != nil {
				return fmt.Errorf("expire: %w", err)
			}
			removed += int(res.Changed)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// Ping returns nil while the file takes writes.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, func(*sqlitefile.Tx, time.Time) error { return nil })
}
