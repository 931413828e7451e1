package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/journal/internal/row"
)

// PutEvent implements [journal.Store].
func (s *Store) PutEvent(ctx context.Context, e webhook.Event) error {
	body := e.Body
	if body == nil {
		body = []byte{}
	}
	var conflict error
	err := s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		conflict = nil
		res, err := tx.Exec(insertEvent, e.Tenant, e.ID, e.Type, e.ContentType, time.Now().UnixMicro(), body)
		if err != nil || res.Changed > 0 {
			return err
		}
		kept, err := selectEvents(tx, selectEvent, e.Tenant, e.ID)
		if err == nil && !row.Same(kept[0].Event, e) {
			conflict = row.Conflict(e)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep webhook event %s: %w", e.ID, unavailable(err))
	}
	return conflict
}

// Event implements [journal.Store].
func (s *Store) Event(ctx context.Context, tenant, id string) (webhook.Event, error) {
	var found []storedEvent
	err := s.file.Read(ctx, func(tx *sqlitefile.Tx) (err error) {
		found, err = selectEvents(tx, selectEvent, tenant, id)
		return err
	})
	switch {
	case err != nil:
		return webhook.Event{}, unavailable(err)
	case len(found) == 0:
		return webhook.Event{}, fmt.Errorf("%w: %s", webhook.ErrNoEvent, id)
	}
	return found[0].Event, nil
}

// Events implements [journal.Store].
func (s *Store) Events(ctx context.Context, f journal.EventFilter, after string, limit int) (events []webhook.Event, next string, err error) {
	if limit < 1 {
		return nil, "", errors.New("list webhook events: limit must be at least 1")
	}
	place := row.Cursor{Micro: math.MinInt64}
	if after != "" {
		if place, err = row.Parse(after); err != nil {
			return nil, "", err
		}
	}
	from, to := bounds(f.From, f.To)
	prefix, whole := row.Types(f)
	var found []storedEvent
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) (err error) {
		found, err = selectEvents(tx, listEvents, f.Tenant, from, to, place.Micro, place.Seq, limit+1, prefix, whole, f.WithoutBodies)
		return err
	})
	if err != nil {
		return nil, "", unavailable(err)
	}
	if len(found) > limit {
		found = found[:limit]
		next = row.At(found[limit-1].At, found[limit-1].seq).String()
	}
	for _, e := range found {
		events = append(events, e.Event)
	}
	return events, next, nil
}

// bounds are the times of a filter.
func bounds(from, to time.Time) (first, end int64) {
	first, end = math.MinInt64, math.MaxInt64
	if !from.IsZero() {
		first = row.Micros(from)
	}
	if !to.IsZero() {
		end = row.Micros(to)
	}
	return first, end
}

// storedEvent is an event and its row.
type storedEvent struct {
	webhook.Event
	seq int64
}

// selectEvents runs a query for eventColumns.
func selectEvents(tx *sqlitefile.Tx, query string, args ...any) ([]storedEvent, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []storedEvent
	for rows.Next() {
		var e storedEvent
		var at int64
		if err := rows.Scan(&e.seq, &e.Tenant, &e.ID, &e.Type, &e.ContentType, &at, &e.Body); err != nil {
			return nil, err
		}
		e.At = time.UnixMicro(at).UTC()
		found = append(found, e)
	}
	return found, rows.Err()
}
