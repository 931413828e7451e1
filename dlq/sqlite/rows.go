package sqlite

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/cursor"
	"github.com/caisson-go/caisson/dlq/internal/headers"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func fromMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

// insert stores a prepared entry and reports whether it was new.
func insert(tx *sqlitefile.Tx, e dlq.Entry) (bool, error) {
	var attempts any
	if len(e.Attempts) > 0 {
		text, err := json.Marshal(e.Attempts)
		if err != nil {
			return false, fmt.Errorf("attempts of %s: %w", e.ID, err)
		}
		attempts = string(text)
	}
	res, err := tx.Exec(insertEntry, e.ID, e.Job, e.Run, string(e.State), e.Queue, e.Kind, e.Key, e.Destination, string(e.Cause),
		e.Fingerprint, e.AttemptCount, micros(e.EnqueuedAt), micros(e.FirstFailedAt), micros(e.LastFailedAt), e.StoredAt.UnixMicro(),
		e.ChangedAt.UnixMicro(), len(e.Message.Body), e.Error, attempts, e.Group)
	if err != nil || res.Changed == 0 {
		return false, err
	}
	_, err = tx.Exec(insertMessage, res.LastID, e.Message.Body, headers.Encode(e.Message.Headers))
	return true, err
}

// remove deletes an entry and its message.
func remove(tx *sqlitefile.Tx, seq int64) error {
	if _, err := tx.Exec(deleteEntry, seq); err != nil {
		return err
	}
	_, err := tx.Exec(deleteMessage, seq)
	return err
}

// stored is an entry and its row.
type stored struct {
	dlq.Entry
	seq int64
}

func (s stored) cursor() cursor.Cursor { return cursor.At(s.StoredAt, s.seq) }

// selectEntries runs a query for entryColumns.
func selectEntries(tx *sqlitefile.Tx, query string, args ...any) ([]stored, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []stored
	for rows.Next() {
		s, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, rows.Err()
}

// scanEntry reads entryColumns, and the columns behind them into more.
func scanEntry(rows *sqlitefile.Rows, more ...any) (s stored, err error) {
	var state, cause string
	var enqueued, first, last, storedAt, changed sql.NullInt64
	var attempts sql.NullString
	columns := []any{
		&s.seq, &s.ID, &s.Job, &s.Run, &state, &s.Queue, &s.Kind, &s.Key, &s.Destination, &cause, &s.Fingerprint, &s.AttemptCount,
		&enqueued, &first, &last, &storedAt, &changed, &s.Error, &attempts, &s.Group, &s.ClosedBy,
	}
	err = rows.Scan(append(columns, more...)...)
	if err != nil {
		return s, err
	}
	s.State, s.Cause, s.Replays = dlq.State(state), dlq.Cause(cause), s.Run
	s.EnqueuedAt, s.FirstFailedAt, s.LastFailedAt = fromMicros(enqueued), fromMicros(first), fromMicros(last)
	s.StoredAt, s.ChangedAt = fromMicros(storedAt), fromMicros(changed)
	if attempts.Valid {
		if err := json.Unmarshal([]byte(attempts.String), &s.Attempts); err != nil {
			return s, fmt.Errorf("attempts of %s: %w", s.ID, err)
		}
	}
	return s, nil
}

// loadMessage fills in the message of s. A purged entry has none.
func (s *stored) loadMessage(tx *sqlitefile.Tx) error {
	rows, err := tx.Query(selectMessage, s.seq)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return rows.Err()
	}
	var encoded []byte
	if err := rows.Scan(&s.Message.Body, &encoded); err != nil {
		return err
	}
	if s.Message.Headers, err = headers.Decode(encoded); err != nil {
		return fmt.Errorf("dead letter %s: %w", s.ID, err)
	}
	return nil
}

// seqs runs a query for row numbers.
func seqs(tx *sqlitefile.Tx, query string, args ...any) ([]int64, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []int64
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return nil, err
		}
		found = append(found, seq)
	}
	return found, rows.Err()
}
