package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

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
	args := []any{[]byte(e.Tenant), []byte(e.ID), []byte(e.Type), []byte(e.ContentType), body}
	for {
		done, same := false, false
		err := s.write(ctx, s.sql.writeEvent, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, s.sql.insertEvent, args...).Scan(&done); err != nil || done {
				same = true
				return err
			}
			err := tx.QueryRow(ctx, s.sql.sameEvent, args...).Scan(&same)
			if done = err == nil; errors.Is(err, pgx.ErrNoRows) { // it went meanwhile
				err = nil
			}
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("keep webhook event %s: %w", e.ID, err)
		case done && !same:
			return row.Conflict(e)
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// Event implements [journal.Store].
func (s *Store) Event(ctx context.Context, tenant, id string) (webhook.Event, error) {
	found, err := s.events(ctx, beginRead, s.sql.selectEvent, []byte(tenant), []byte(id))
	switch {
	case err != nil:
		return webhook.Event{}, err
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
	query, args, err := s.listEvents(f, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	found, err := s.events(ctx, beginPage, query, args...)
	if err != nil {
		return nil, "", err
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

// listEvents writes the query of one page.
func (s *Store) listEvents(f journal.EventFilter, after string, limit int) (query string, args []any, err error) {
	w := &where{args: []any{[]byte(f.Tenant)}}
	switch prefix, whole := row.Types(f); {
	case whole:
		w.add("type = ?::bytea", []byte(prefix))
	case prefix != "":
		w.add("substr(type, 1, ?::int) = ?::bytea", len(prefix), []byte(prefix))
	}
	w.between("at", f.From, f.To)
	if after != "" {
		place, err := row.Parse(after)
		if err != nil {
			return "", nil, err
		}
		w.add("(at, seq) > (?::timestamptz, ?::bigint)", place.Time(), place.Seq)
	}
	list := s.sql.selectEvents
	if f.WithoutBodies {
		list = s.sql.selectHeads
	}
	return list + w.sql("AND") + " ORDER BY at, seq LIMIT " + itoa(limit), w.args, nil
}

// between adds the times of a filter.
func (w *where) between(column string, from, to time.Time) {
	if !from.IsZero() {
		w.add(column+" >= ?::timestamptz", time.UnixMicro(row.Micros(from)))
	}
	if !to.IsZero() {
		w.add(column+" < ?::timestamptz", time.UnixMicro(row.Micros(to)))
	}
}

// storedEvent is an event and its row.
type storedEvent struct {
	webhook.Event
	seq int64
}

// events runs a query for eventColumns.
func (s *Store) events(ctx context.Context, begin, query string, args ...any) (found []storedEvent, err error) {
	err = s.read(ctx, begin, query, args, func(rows pgx.Rows) error {
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e storedEvent, err error) {
			var tenant, id, typ, contentType []byte
			err = row.Scan(&e.seq, &tenant, &id, &typ, &contentType, &e.At, &e.Body)
			e.Tenant, e.ID, e.Type, e.ContentType, e.At = string(tenant), string(id), string(typ), string(contentType), e.At.UTC()
			return e, err
		})
		return err
	})
	return found, err
}

func itoa(n int) string { return strconv.Itoa(n) }
