package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/journal/internal/row"
)

// Log implements [journal.Store].
func (s *Store) Log(ctx context.Context, attempts []journal.Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	err := s.file.Write(ctx, false, func(tx *sqlitefile.Tx) error {
		for _, a := range attempts {
			a = row.Of(a)
			if _, err := tx.Exec(insertAttempt, a.At.UnixMicro(), a.Tenant, a.Endpoint, a.Event, a.Job, a.Number, a.Status, a.Phase,
				int64(a.Duration), a.Excerpt, a.Error, a.RequestID, a.Resent, a.CutOff); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("log %d webhook attempts: %w", len(attempts), unavailable(err))
	}
	return nil
}

// Attempts implements [journal.Store].
func (s *Store) Attempts(ctx context.Context, f journal.AttemptFilter, after string, limit int) (attempts []journal.Attempt, next string, err error) {
	if limit < 1 {
		return nil, "", errors.New("list webhook attempts: limit must be at least 1")
	}
	w := &where{}
	w.equal("tenant", f.Tenant)
	w.equal("endpoint", f.Endpoint)
	w.equal("event", f.Event)
	if f.Failed {
		w.add("status NOT BETWEEN 200 AND 299")
	}
	from, to := bounds(f.From, f.To)
	w.add("at >= ? AND at < ?", from, to)
	if after != "" {
		place, err := row.Parse(after)
		if err != nil {
			return nil, "", err
		}
		w.add("(at, seq) < (?, ?)", place.Micro, place.Seq)
	}
	query := "SELECT " + attemptColumns + " FROM caisson_webhook_attempts WHERE " + strings.Join(w.conditions, " AND ") +
		" ORDER BY at DESC, seq DESC LIMIT ?+0"
	var seqs []int64
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		attempts, seqs, err = selectAttempts(tx, query, append(w.args, limit+1)...)
		return err
	})
	if err != nil {
		return nil, "", unavailable(err)
	}
	if len(attempts) > limit {
		attempts = attempts[:limit]
		next = row.At(attempts[limit-1].At, seqs[limit-1]).String()
	}
	return attempts, next, nil
}

// where is a condition in the making.
type where struct {
	conditions []string
	args       []any
}

func (w *where) add(condition string, args ...any) {
	w.conditions, w.args = append(w.conditions, condition), append(w.args, args...)
}

func (w *where) equal(column, value string) {
	if value != "" {
		w.add(column+" = ?", value)
	}
}

func selectAttempts(tx *sqlitefile.Tx, query string, args ...any) (found []journal.Attempt, seqs []int64, err error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var a journal.Attempt
		var seq, at, duration int64
		if err := rows.Scan(&seq, &at, &a.Tenant, &a.Endpoint, &a.Event, &a.Job, &a.Number, &a.Status, &a.Phase, &duration, &a.Excerpt,
			&a.Error, &a.RequestID, &a.Resent, &a.CutOff); err != nil {
			return nil, nil, err
		}
		a.At, a.Duration = time.UnixMicro(at).UTC(), time.Duration(duration)
		found, seqs = append(found, a), append(seqs, seq)
	}
	return found, seqs, rows.Err()
}

// Tried implements [journal.Store].
func (s *Store) Tried(ctx context.Context, tenant, endpoint string, events []string) (map[string]bool, error) {
	tried := make(map[string]bool, len(events))
	err := s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		for _, id := range events {
			var found bool
			if err := tx.QueryRow(selectTried, []any{id, endpoint, tenant}, &found); err != nil {
				return err
			}
			if found {
				tried[id] = true
			}
		}
		return nil
	})
	return tried, unavailable(err)
}
