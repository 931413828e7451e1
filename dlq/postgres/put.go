package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/headers"
)

// Limits of one statement that stores entries.
const (
	putEntries = 500
	putBytes   = 16 << 20
)

// Put stores entries. Fresh ones are stored together; one whose id is known is looked at alone.
func (s *Store) Put(ctx context.Context, entries []dlq.Entry) []error {
	errs := make([]error, len(entries))
	var fresh, known []int // places in entries
	seen := make(map[string]bool, len(entries))
	prepared := make([]dlq.Entry, len(entries))
	for i, e := range entries {
		e, err := e.ForStore(time.Time{}) // the database knows the time
		if errs[i] = err; err != nil {
			continue
		}
		prepared[i] = e
		if seen[e.ID] {
			known = append(known, i)
			continue
		}
		seen[e.ID] = true
		fresh = append(fresh, i)
	}
	for chunk := range chunks(prepared, fresh) {
		known = append(known, s.putFresh(ctx, prepared, chunk, errs)...)
	}
	slices.Sort(known)
	for _, i := range known {
		errs[i] = s.settle(ctx, prepared[i])
	}
	return errs
}

// chunks cuts places into chunks of bounded size, in the order of ids, so that two who store the same entries at once cannot deadlock.
func chunks(entries []dlq.Entry, places []int) func(yield func([]int) bool) {
	slices.SortFunc(places, func(a, b int) int { return strings.Compare(entries[a].ID, entries[b].ID) })
	return func(yield func([]int) bool) {
		from, bytes := 0, 0
		for to, i := range places {
			size := len(entries[i].Message.Body)
			if to > from && (to-from == putEntries || bytes+size > putBytes) {
				if !yield(places[from:to]) {
					return
				}
				from, bytes = to, 0
			}
			bytes += size
		}
		if from < len(places) {
			yield(places[from:])
		}
	}
}

// putFresh stores those of a chunk whose id is new and returns the others. An entry that the database refuses fails alone.
func (s *Store) putFresh(ctx context.Context, entries []dlq.Entry, chunk []int, errs []error) (known []int) {
	rows := make([]dlq.Entry, len(chunk))
	for n, i := range chunk {
		rows[n] = entries[i]
	}
	stored, err := s.store(ctx, rows)
	if err != nil && len(chunk) > 1 && !errors.Is(err, dlq.ErrUnavailable) && ctx.Err() == nil {
		for _, i := range chunk {
			known = append(known, s.putFresh(ctx, entries, []int{i}, errs)...)
		}
		return known
	}
	for _, i := range chunk {
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("put dead letter %s: %w", entries[i].ID, err)
		case !stored[entries[i].ID]:
			known = append(known, i)
		}
	}
	return known
}

// store inserts entries in a transaction of their own and returns the ids of those that were new.
func (s *Store) store(ctx context.Context, entries []dlq.Entry) (ids map[string]bool, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		ids, err = s.insert(ctx, tx, entries)
		return err
	})
	return ids, err
}

func (s *Store) insert(ctx context.Context, tx pgx.Tx, entries []dlq.Entry) (map[string]bool, error) {
	var c columns
	for _, e := range entries {
		if err := c.add(e); err != nil {
			return nil, err
		}
	}
	rows, err := tx.Query(ctx, s.sql.insert, c.args()...)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]bool, len(entries))
	var id []byte
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error { ids[string(id)] = true; return nil })
	return ids, err
}

// settle stores an entry whose id exists.
func (s *Store) settle(ctx context.Context, e dlq.Entry) error {
	for {
		done, other := false, false
		err := s.write(ctx, func(tx pgx.Tx) (err error) {
			done, other, err = s.settleIn(ctx, tx, e)
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("put dead letter %s: %w", e.ID, err)
		case done:
			return nil
		case other:
			e.ID = dlq.OtherEntryID(e.Job, e.Run, e.Message.Body)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// settleIn reports whether it is done, or that the id is another payload's. Otherwise the entry came or went meanwhile: call it again.
func (s *Store) settleIn(ctx context.Context, tx pgx.Tx, e dlq.Entry) (done, other bool, err error) {
	var seq int64
	var state dlq.State
	var same bool
	err = tx.QueryRow(ctx, s.sql.find, []byte(e.ID), notNull(e.Message.Body)).Scan(&seq, (*string)(&state), &same)
	if errors.Is(err, pgx.ErrNoRows) {
		ids, err := s.insert(ctx, tx, []dlq.Entry{e})
		return ids[e.ID], false, err
	}
	switch {
	case err != nil:
		return false, false, err
	case !same && state != dlq.StatePurged: // one that was purged cannot tell
		first := e.ID == dlq.EntryID(e.Job, e.Run)
		return !first, first, nil
	case state != dlq.StateHeld:
		return true, false, nil
	case e.State == dlq.StateHeld:
		_, err = tx.Exec(ctx, s.sql.free, []int64{seq})
		return true, false, err
	}
	if _, err := tx.Exec(ctx, s.sql.remove, []int64{seq}); err != nil {
		return false, false, err
	}
	ids, err := s.insert(ctx, tx, []dlq.Entry{e})
	return ids[e.ID], false, err
}

// columns are entries as one array per column, for insertEntries.
type columns struct {
	ids, jobs, queues, kinds, keys, destinations, groups, causes, fingerprints, errorBytes, bodies, headers [][]byte
	runs, attemptCounts                                                                                     []int64
	states, errors                                                                                          []string
	enqueued, first, last                                                                                   []*time.Time
	json                                                                                                    []int16
	attempts, payloads                                                                                      []*string
}

func (c *columns) add(e dlq.Entry) error {
	var attempts, payload *string
	if len(e.Attempts) > 0 {
		text, err := json.Marshal(e.Attempts)
		if err != nil {
			return fmt.Errorf("attempts of %s: %w", e.ID, err)
		}
		attempts = new(string)
		*attempts = string(text)
	}
	class := jsonClass(e.Message.Body)
	if class == jsonStored {
		payload = new(string)
		*payload = string(e.Message.Body)
	}
	var errorBytes []byte
	search := strings.ReplaceAll(e.Error, "\x00", "\uFFFD")
	if search != e.Error {
		errorBytes = []byte(e.Error)
	}
	for _, f := range []struct {
		column *[][]byte
		value  string
	}{
		{&c.ids, e.ID},
		{&c.jobs, e.Job},
		{&c.queues, e.Queue},
		{&c.kinds, e.Kind},
		{&c.keys, e.Key},
		{&c.destinations, e.Destination},
		{&c.groups, e.Group},
		{&c.causes, string(e.Cause)},
		{&c.fingerprints, e.Fingerprint},
	} {
		*f.column = append(*f.column, []byte(f.value))
	}
	c.runs, c.attemptCounts = append(c.runs, int64(e.Run)), append(c.attemptCounts, int64(e.AttemptCount))
	c.states, c.errors, c.errorBytes = append(c.states, string(e.State)), append(c.errors, search), append(c.errorBytes, errorBytes)
	c.enqueued, c.first = append(c.enqueued, unknown(e.EnqueuedAt)), append(c.first, unknown(e.FirstFailedAt))
	c.last, c.json = append(c.last, unknown(e.LastFailedAt)), append(c.json, class)
	c.attempts, c.payloads = append(c.attempts, attempts), append(c.payloads, payload)
	c.bodies = append(c.bodies, notNull(e.Message.Body))
	c.headers = append(c.headers, headers.Encode(e.Message.Headers))
	return nil
}

// notNull makes nil the empty body.
func notNull(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}

func (c *columns) args() []any {
	return []any{
		c.ids, c.jobs, c.runs, c.states, c.queues, c.kinds, c.keys, c.destinations, c.groups, c.causes, c.fingerprints, c.attemptCounts, c.enqueued,
		c.first, c.last, c.json, c.errors, c.errorBytes, c.attempts, c.bodies, c.headers, c.payloads,
	}
}
