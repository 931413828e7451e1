package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
)

// Get returns what is known of a key.
func (s *Store) Get(ctx context.Context, key idempotency.Key) (idempotency.Record, error) {
	var r *record.Record
	err := s.repeat(ctx, func(conn *pgx.Conn, _ bool) error {
		b, err := s.look(ctx, conn, nameOf(key, key.Value, 0))
		if err != nil {
			return err
		}
		holder, ok := b.holder(key)
		if !ok {
			return fmt.Errorf("key %q of scope %q: %w", key.Value, key.Scope, idempotency.ErrNotFound)
		}
		n := nameOf(key, holder.Job, holder.Run)
		if row := b.keys[n.keyID]; !row.ledger.Exists {
			if b, err = s.look(ctx, conn, n); err != nil {
				return err
			}
			if b.keys[n.keyID] == nil || b.keys[n.keyID].Holder != holder {
				return fmt.Errorf("key %q: %w: its holder changes", key.Value, idempotency.ErrUnavailable)
			}
		}
		r, err = b.record(&n)
		return err
	})
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("get: %w", classify(err))
	}
	return r.Known(), nil
}

// Completed reports for each key whether a run of it has completed and is remembered, in one round trip.
func (s *Store) Completed(ctx context.Context, keys []idempotency.Key) ([]bool, error) {
	names := make([]name, len(keys))
	for i, key := range keys {
		names[i] = nameOf(key, key.Value, 0)
	}
	done := make([]bool, len(keys))
	err := s.repeat(ctx, func(conn *pgx.Conn, _ bool) error {
		b, err := s.look(ctx, conn, names...)
		if err != nil {
			return err
		}
		for i := range names {
			row := b.keys[names[i].keyID]
			done[i] = row != nil && row.key == keys[i] && row.State == idempotency.StatusCompleted
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("completed: %w", classify(err))
	}
	return done, nil
}

// look reads the rows that names are about, without locking them.
func (s *Store) look(ctx context.Context, conn *pgx.Conn, names ...name) (*rowSet, error) {
	b, t := newRowSet(), s.roundTrip(conn)
	err := errors.Join(t.add(ctx, &s.sql.guard, nil, nil), b.load(ctx, t, names, &s.sql.readKey, &s.sql.readRuns))
	if err != nil {
		return nil, err
	}
	return b, t.send(ctx)
}

// holder returns the last run that held key.
func (b *rowSet) holder(key idempotency.Key) (record.RunID, bool) {
	row := b.keys[nameOf(key, key.Value, 0).keyID]
	if row == nil || row.key != key {
		return record.RunID{}, false
	}
	return row.Holder, true
}
