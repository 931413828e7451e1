package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
)

// The keys of one value lie together, and so do the runs of one job, whatever their scopes and numbers; jobs under another key have an index.
const (
	findKeys = `SELECT scope, value, now FROM (SELECT {clock} AS now) n LEFT JOIN (
	(SELECT scope, value FROM {claims} WHERE id BETWEEN $1::uuid AND $2::uuid AND value = $3::bytea ORDER BY scope LIMIT $4::int4)
	UNION
	(SELECT scope, value FROM {claims} WHERE job = $3::bytea LIMIT $4::int4)
	ORDER BY scope, value LIMIT $4::int4) f ON true ORDER BY scope, value`
	findRuns = `SELECT run, attempt, closed, coalesce(expires, not_before), history FROM {runs}
	WHERE id BETWEEN $1::uuid AND $2::uuid AND job = $3::bytea ORDER BY run DESC LIMIT $4::int4`
)

var _ idempotency.Finder = (*Store)(nil)

// Find implements [idempotency.Finder]. The records are read one after the other: they need not be of one moment.
func (s *Store) Find(ctx context.Context, text string) (idempotency.Found, error) {
	const limit = idempotency.MaxFound + 1
	var f idempotency.Found
	var keys []idempotency.Key
	var runs []idempotency.Record
	p := digest(text).prefix()
	args := []any{pgtype.UUID{Bytes: p.first(), Valid: true}, pgtype.UUID{Bytes: p.last(), Valid: true}, []byte(text), limit}
	err := s.repeat(ctx, func(conn *pgx.Conn, _ bool) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
			if _, err := tx.Exec(ctx, s.sql.guard.sql); err != nil {
				return err
			}
			if keys, f.Now, err = s.selectKeys(ctx, tx, args); err != nil {
				return err
			}
			runs, err = s.selectRuns(ctx, tx, text, args)
			return err
		})
	})
	if err != nil {
		return idempotency.Found{}, fmt.Errorf("find %q: %w", text, classify(err))
	}
	if f.Records, err = record.Recall(ctx, s.Get, keys); err != nil {
		return idempotency.Found{}, err
	}
	f.Add(runs)
	return f, nil
}

func (s *Store) selectKeys(ctx context.Context, tx pgx.Tx, args []any) (keys []idempotency.Key, now time.Time, err error) {
	rows, err := tx.Query(ctx, s.sql.findKeys.sql, args...)
	if err != nil {
		return nil, now, err
	}
	var scope, value []byte
	_, err = pgx.ForEachRow(rows, []any{&scope, &value, &now}, func() error {
		if value != nil || scope != nil {
			keys = append(keys, idempotency.Key{Scope: string(scope), Value: string(value)})
		}
		return nil
	})
	return keys, now, err
}

func (s *Store) selectRuns(ctx context.Context, tx pgx.Tx, job string, args []any) (runs []idempotency.Record, err error) {
	rows, err := tx.Query(ctx, s.sql.findRuns.sql, args...)
	if err != nil {
		return nil, err
	}
	var r idempotency.Record
	var until *time.Time
	var history []byte
	_, err = pgx.ForEachRow(rows, []any{&r.Run, &r.Attempt, &r.Closed, &until, &history}, func() (err error) {
		run := idempotency.Record{Job: job, Run: r.Run, Attempt: r.Attempt, Closed: r.Closed}
		if until != nil {
			run.Until = *until
		}
		if run.History, err = record.DecodeHistory(history); err != nil {
			return fmt.Errorf("job %q: %w", job, err)
		}
		runs = append(runs, run)
		return nil
	})
	return runs, err
}
