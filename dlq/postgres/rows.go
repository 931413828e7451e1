package postgres

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/cursor"
	"github.com/caisson-go/caisson/dlq/internal/headers"
)

// stored is an entry and its row.
type stored struct {
	dlq.Entry
	seq int64
}

func (s stored) cursor() cursor.Cursor { return cursor.At(s.StoredAt, s.seq) }

// collect reads entries, with their messages if the query has them behind entryColumns.
func collect(rows pgx.Rows, messages bool) ([]stored, error) {
	defer rows.Close()
	var found []stored
	for rows.Next() {
		s, err := scan(rows, messages)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, rows.Err()
}

func scan(rows pgx.Rows, message bool) (s stored, err error) {
	var id, job, queue, kind, key, destination, group, cause, fingerprint, closedBy, errorBytes, encoded []byte
	var enqueued, first, last *time.Time
	var attempts *string
	columns := []any{
		&s.seq, &id, &job, &s.Run, (*string)(&s.State), &queue, &kind, &key, &destination, &group, &cause, &fingerprint, &s.AttemptCount,
		&enqueued, &first, &last, &s.StoredAt, &s.ChangedAt, &closedBy, &s.Error, &errorBytes, &attempts,
	}
	if message {
		columns = append(columns, &s.Message.Body, &encoded)
	}
	if err := rows.Scan(columns...); err != nil {
		return s, err
	}
	s.ID, s.Job, s.Queue, s.Kind, s.Key, s.Destination = string(id), string(job), string(queue), string(kind), string(key), string(destination)
	s.Group, s.Cause, s.Fingerprint, s.ClosedBy = string(group), dlq.Cause(cause), string(fingerprint), string(closedBy)
	s.Replays = s.Run
	s.EnqueuedAt, s.FirstFailedAt, s.LastFailedAt = known(enqueued), known(first), known(last)
	s.StoredAt, s.ChangedAt = s.StoredAt.UTC(), s.ChangedAt.UTC()
	if errorBytes != nil {
		s.Error = string(errorBytes)
	}
	if attempts != nil {
		if err := json.Unmarshal([]byte(*attempts), &s.Attempts); err != nil {
			return s, fmt.Errorf("attempts of %s: %w", s.ID, err)
		}
	}
	if s.Message.Headers, err = headers.Decode(encoded); err != nil {
		return s, fmt.Errorf("dead letter %s: %w", s.ID, err)
	}
	return s, nil
}

// known returns the zero time for one that is unknown.
func known(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// unknown is NULL for the zero time.
func unknown(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// entries leaves the rows' numbers out.
func entries(found []stored) []dlq.Entry {
	list := make([]dlq.Entry, len(found))
	for i, s := range found {
		list[i] = s.Entry
	}
	return list
}
