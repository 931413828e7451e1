package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/sqlitefile"
)

// Get returns what is known of a key.
func (s *Store) Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error) {
	var rec idempotency.Record
	err := s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		r, err := load(tx, key, runID{})
		if err != nil {
			return err
		}
		if !r.row.exists {
			return fmt.Errorf("key %q of scope %q: %w", key.Value, key.Scope, idempotency.ErrNotFound)
		}
		rec = r.record()
		return nil
	})
	return rec, unavailable(err)
}

func (r *records) record() idempotency.Record {
	rec := idempotency.Record{
		Key: r.key, State: r.row.state, Job: r.id.job, Run: r.id.run, Attempt: r.run.attempt, Closed: r.run.closed,
		Owner: r.row.owner, Token: r.row.token, History: r.run.history, Result: r.row.result,
	}
	until := r.run.notBefore
	switch {
	case r.row.state == idempotency.Acquired:
		until = r.row.until
	case r.row.expires.Valid:
		until = r.row.expires
	}
	if until.Valid {
		rec.Until = time.Unix(0, until.Int64)
	}
	return rec
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
