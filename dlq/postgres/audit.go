package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/cursor"
)

// BeginAudit stores a record as running, or lets an existing one go on.
func (s *Store) BeginAudit(ctx context.Context, a dlq.Audit) (dlq.Audit, error) {
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
	return found[0].Audit, nil
}

// UpdateAudit says how far an operation came.
func (s *Store) UpdateAudit(ctx context.Context, id string, c dlq.AuditCounts) error {
	return s.setAudit(ctx, id, dlq.AuditStateRunning, c, "")
}

// EndAudit ends the record of an operation.
func (s *Store) EndAudit(ctx context.Context, id string, state dlq.AuditState, c dlq.AuditCounts, problem string) error {
	if err := dlq.CheckAuditEnd(state); err != nil {
		return err
	}
	return s.setAudit(ctx, id, state, c, problem)
}

func (s *Store) setAudit(ctx context.Context, id string, state dlq.AuditState, c dlq.AuditCounts, problem string) error {
	tag, err := s.pool.Exec(ctx, s.sql.updateAudit, []byte(id), string(state), int64(c.Done), int64(c.Failed), int64(c.Refused),
		[]byte(dlq.CapError(problem, dlq.MaxError)))
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("%s: %w", id, dlq.ErrNoAudit)
	}
	return s.failed(err)
}

// Audit returns one record.
func (s *Store) Audit(ctx context.Context, id string) (dlq.Audit, error) {
	found, err := s.audits(ctx, s.sql.audit, []byte(id))
	switch {
	case err != nil:
		return dlq.Audit{}, err
	case len(found) == 0:
		return dlq.Audit{}, fmt.Errorf("%s: %w", id, dlq.ErrNoAudit)
	}
	return found[0].Audit, nil
}

// Audits returns records, newest first.
func (s *Store) Audits(ctx context.Context, after string, limit int) (list []dlq.Audit, next string, err error) {
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
	if len(found) > limit {
		found = found[:limit]
		last := found[limit-1]
		next = cursor.At(last.StartedAt, last.seq).String()
	}
	for _, a := range found {
		list = append(list, a.Audit)
	}
	return list, next, nil
}

// audit is a record and its row.
type audit struct {
	dlq.Audit
	seq int64
}

// audits runs a statement that returns auditColumns. Records come as they are at the database's time.
func (s *Store) audits(ctx context.Context, statement string, args ...any) ([]audit, error) {
	rows, err := s.pool.Query(ctx, statement, args...)
	if err != nil {
		return nil, s.failed(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a audit, err error) {
		var id, action, actor, filter, problem []byte
		var silence int64
		var ended *time.Time
		var now time.Time
		err = row.Scan(&a.seq, &id, &action, &actor, &filter, &a.Planned, &a.Done, &a.Failed, &a.Refused, (*string)(&a.State), &problem, &silence,
			&a.StartedAt, &a.UpdatedAt, &ended, &now)
		a.ID, a.Action, a.Actor, a.Filter, a.Problem = string(id), string(action), string(actor), string(filter), string(problem)
		a.Silence = time.Duration(silence) * time.Microsecond
		a.StartedAt, a.UpdatedAt, a.EndedAt = a.StartedAt.UTC(), a.UpdatedAt.UTC(), known(ended)
		a.Audit = a.At(now)
		return a, err
	})
	return found, s.failed(err)
}
