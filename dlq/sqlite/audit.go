package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/cursor"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

var _ dlq.AuditLog = (*Store)(nil)

// BeginAudit stores a record as running, or lets an existing one go on.
func (s *Store) BeginAudit(ctx context.Context, a dlq.Audit) (dlq.Audit, error) {
	now := time.Now()
	a, err := a.ForLog(now)
	if err != nil {
		return a, err
	}
	err = s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		res, err := tx.Exec(beginAudit, a.ID, a.Action, a.Actor, a.Filter, a.Planned, int64(a.Silence), now.UnixMicro(), now.UnixMicro())
		if err != nil {
			return err
		}
		found, err := audits(tx, selectAudit, a.ID)
		if err != nil {
			return err
		}
		if res.Changed == 0 {
			return fmt.Errorf("audit record %q is of another action, %s: an id names one operation", a.ID, found[0].Action)
		}
		a = found[0].Audit
		return nil
	})
	return a, unavailable(err)
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
	now := time.Now().UnixMicro()
	var ended any
	if state != dlq.AuditStateRunning {
		ended = now
	}
	err := s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		res, err := tx.Exec(updateAudit, string(state), c.Done, c.Failed, c.Refused, dlq.CapError(problem, dlq.MaxError), now, ended, id)
		if err == nil && res.Changed == 0 {
			err = fmt.Errorf("%s: %w", id, dlq.ErrNoAudit)
		}
		return err
	})
	return unavailable(err)
}

// Audit returns one record.
func (s *Store) Audit(ctx context.Context, id string) (a dlq.Audit, err error) {
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		found, err := audits(tx, selectAudit, id)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s: %w", id, dlq.ErrNoAudit)
		}
		a = found[0].At(time.Now())
		return nil
	})
	return a, unavailable(err)
}

// Audits returns records, newest first.
func (s *Store) Audits(ctx context.Context, after string, limit int) (list []dlq.Audit, next string, err error) {
	if limit < 1 {
		return nil, "", errors.New("list audit records: limit must be at least 1")
	}
	c := cursor.Cursor{Micro: math.MaxInt64, Seq: math.MaxInt64}
	if after != "" {
		if c, err = cursor.Parse(after); err != nil {
			return nil, "", err
		}
	}
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		list, next = nil, ""
		found, err := audits(tx, listAudits, c.Micro, c.Seq, limit+1)
		if err != nil {
			return err
		}
		if len(found) > limit {
			found = found[:limit]
			last := found[limit-1]
			next = cursor.At(last.StartedAt, last.seq).String()
		}
		for _, a := range found {
			list = append(list, a.At(time.Now()))
		}
		return nil
	})
	return list, next, unavailable(err)
}

// audit is a record and its row.
type audit struct {
	dlq.Audit
	seq int64
}

// audits runs a query for auditColumns.
func audits(tx *sqlitefile.Tx, query string, args ...any) ([]audit, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []audit
	for rows.Next() {
		var a audit
		var started, updated, ended sql.NullInt64
		var silence int64
		err := rows.Scan(&a.seq, &a.ID, &a.Action, &a.Actor, &a.Filter, &a.Planned, &a.Done, &a.Failed, &a.Refused, (*string)(&a.State),
			&a.Problem, &silence, &started, &updated, &ended)
		if err != nil {
			return nil, err
		}
		a.Silence = time.Duration(silence)
		a.StartedAt, a.UpdatedAt, a.EndedAt = fromMicros(started), fromMicros(updated), fromMicros(ended)
		found = append(found, a)
	}
	return found, rows.Err()
}
