package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/dlq/internal/cursor"
	"github.com/caisson-go/caisson/internal/truncate"
)

// BeginAudit stores a record as running, or lets an existing one go on.
func (s *Store) BeginAudit(ctx context.Context, a audit.Record) (audit.Record, error) {
	a, err := a.ForLog(time.Time{}) // the database knows the time
	if err != nil {
		return a, err
	}
	found, err := s.audits(ctx, s.sql.beginAudit, []byte(a.ID), []byte(a.Action), []byte(a.Actor), []byte(a.Filter), int64(a.Planned),
		a.Silence.Microseconds())
	switch {
	case err != nil:
		return a, err
	case len(found) == 0:
		return a, fmt.Errorf("audit record %q is of another action than %s: an id names one operation", a.ID, a.Action)
	}
	return found[0].Record, nil
}

// UpdateAudit says how far an operation came.
func (s *Store) UpdateAudit(ctx context.Context, id string, c audit.Counts) error {
	return s.setAudit(ctx, id, audit.StateRunning, c, "")
}

// EndAudit ends the record of an operation.
func (s *Store) EndAudit(ctx context.Context, id string, state audit.State, c audit.Counts, problem string) error {
	if err := state.ValidateEnd(); err != nil {
		return err
	}
	return s.setAudit(ctx, id, state, c, problem)
}

func (s *Store) setAudit(ctx context.Context, id string, state audit.State, c audit.Counts, problem string) error {
	tag, err := s.pool.Exec(ctx, s.sql.updateAudit, []byte(id), string(state), int64(c.Done), int64(c.Failed), int64(c.Refused),
		[]byte(truncate.Text(problem, dlq.MaxError)))
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("%s: %w", id, audit.ErrNotFound)
	}
	return s.failed(err)
}

// Audit returns one record.
func (s *Store) Audit(ctx context.Context, id string) (audit.Record, error) {
	found, err := s.audits(ctx, s.sql.audit, []byte(id))
	switch {
	case err != nil:
		return audit.Record{}, err
	case len(found) == 0:
		return audit.Record{}, fmt.Errorf("%s: %w", id, audit.ErrNotFound)
	}
	return found[0].Record, nil
}

// Audits returns records, newest first.
func (s *Store) Audits(ctx context.Context, after string, limit int) (list []audit.Record, next string, err error) {
	if limit < 1 {
		return nil, "", errors.New("list audit records: limit must be at least 1")
	}
	var at *time.Time
	var seq int64
	if after != "" {
		c, err := cursor.Parse(after)
		if err != nil {
			return nil, "", err
		}
		started := c.Time()
		at, seq = &started, c.Seq
	}
	found, err := s.audits(ctx, s.sql.listAudits, at, seq, int64(limit)+1)
	if err != nil {
		return nil, "", err
	}
	found, next = cursor.Page(found, limit, record.cursor)
	for _, a := range found {
		list = append(list, a.Record)
	}
	return list, next, nil
}

// record is an audit record and its row.
type record struct {
	audit.Record
	seq int64
}

func (r record) cursor() cursor.Cursor { return cursor.At(r.StartedAt, r.seq) }

// audits runs a statement that returns auditColumns. Records come as they are at the database's time.
func (s *Store) audits(ctx context.Context, statement string, args ...any) ([]record, error) {
	rows, err := s.pool.Query(ctx, statement, args...)
	if err != nil {
		return nil, s.failed(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r record, err error) {
		var id, action, actor, filter, problem []byte
		var silence int64
		var ended *time.Time
		var now time.Time
		err = row.Scan(&r.seq, &id, &action, &actor, &filter, &r.Planned, &r.Done, &r.Failed, &r.Refused, (*string)(&r.State), &problem, &silence,
			&r.StartedAt, &r.UpdatedAt, &ended, &now)
		r.ID, r.Action, r.Actor, r.Filter, r.Problem = string(id), string(action), string(actor), string(filter), string(problem)
		r.Silence = time.Duration(silence) * time.Microsecond
		r.StartedAt, r.UpdatedAt, r.EndedAt = r.StartedAt.UTC(), r.UpdatedAt.UTC(), known(ended)
		r.Record = r.At(now)
		return r, err
	})
	return found, s.failed(err)
}
