package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/dlq/internal/cursor"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/truncate"
)

var _ audit.Log = (*Store)(nil)

// BeginAudit stores a record as running, or lets an existing one go on.
func (s *Store) BeginAudit(ctx context.Context, a audit.Record) (audit.Record, error) {
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
		a = found[0].Record
		return nil
	})
	return a, unavailable(err)
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
	now := time.Now().UnixMicro()
	var ended any
	if state != audit.StateRunning {
		ended = now
	}
	err := s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		res, err := tx.Exec(updateAudit, string(state), c.Done, c.Failed, c.Refused, truncate.Text(problem, dlq.MaxError), now, ended, id)
		if err == nil && res.Changed == 0 {
			err = fmt.Errorf("%s: %w", id, audit.ErrNotFound)
		}
		return err
	})
	return unavailable(err)
}

// Audit returns one record.
func (s *Store) Audit(ctx context.Context, id string) (a audit.Record, err error) {
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		found, err := audits(tx, selectAudit, id)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s: %w", id, audit.ErrNotFound)
		}
		a = found[0].At(time.Now())
		return nil
	})
	return a, unavailable(err)
}

// Audits returns records, newest first.
func (s *Store) Audits(ctx context.Context, after string, limit int) (list []audit.Record, next string, err error) {
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
		found, next = cursor.Page(found, limit, record.cursor)
		for _, a := range found {
			list = append(list, a.At(time.Now()))
		}
		return nil
	})
	return list, next, unavailable(err)
}

// record is an audit record and its row.
type record struct {
	audit.Record
	seq int64
}

func (r record) cursor() cursor.Cursor { return cursor.At(r.StartedAt, r.seq) }

// audits runs a query for auditColumns.
func audits(tx *sqlitefile.Tx, query string, args ...any) ([]record, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []record
	for rows.Next() {
		var r record
		var started, updated, ended sql.NullInt64
		var silence int64
		err := rows.Scan(&r.seq, &r.ID, &r.Action, &r.Actor, &r.Filter, &r.Planned, &r.Done, &r.Failed, &r.Refused, (*string)(&r.State),
			&r.Problem, &silence, &started, &updated, &ended)
		if err != nil {
			return nil, err
		}
		r.Silence = time.Duration(silence)
		r.StartedAt, r.UpdatedAt, r.EndedAt = fromMicros(started), fromMicros(updated), fromMicros(ended)
		found = append(found, r)
	}
	return found, rows.Err()
}
