package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/cursor"
)

// Get returns one entry with its message.
func (s *Store) Get(ctx context.Context, id string) (dlq.Entry, error) {
	rows, err := s.pool.Query(ctx, s.sql.get, []byte(id))
	if err != nil {
		return dlq.Entry{}, s.failed(err)
	}
	found, err := collect(rows, true)
	switch {
	case err != nil:
		return dlq.Entry{}, s.failed(err)
	case len(found) == 0:
		return dlq.Entry{}, fmt.Errorf("%s: %w", id, dlq.ErrNotFound)
	}
	return found[0].Entry, nil
}

// GetMany returns those of the entries that exist, with their messages.
func (s *Store) GetMany(ctx context.Context, ids []string) ([]dlq.Entry, error) {
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = []byte(id)
	}
	var found []stored
	err := s.read(ctx, s.sql.getMany, []any{keys}, func(rows pgx.Rows) (err error) {
		found, err = collect(rows, true)
		return err
	})
	return entries(found), err
}

// List returns entries without their messages, newest first.
func (s *Store) List(ctx context.Context, f dlq.Filter, after string, limit int) (list []dlq.Entry, next string, err error) {
	if limit < 1 {
		return nil, "", errors.New("list dead letters: limit must be at least 1")
	}
	w, err := s.matching(ctx, f, nil)
	if err != nil {
		return nil, "", s.failed(err)
	}
	if after != "" {
		c, err := cursor.Parse(after)
		if err != nil {
			return nil, "", err
		}
		w.add("(d.stored_at, d.seq) < (" + w.arg(c.Time(), "timestamptz") + ", " + w.arg(c.Seq, "bigint") + ")")
	}
	query := s.sql.in("SELECT {entry} FROM {letters} d") + w.sql() + " ORDER BY d.stored_at DESC, d.seq DESC LIMIT " + strconv.Itoa(limit+1)
	var found []stored
	page := func(rows pgx.Rows) error {
		found, err = collect(rows, false)
		return err
	}
	if ordered(f) {
		err = s.readIn(ctx, beginPage, query, w.args, page)
	} else {
		err = s.find(ctx, f, query, w.args, page)
	}
	if err != nil {
		return nil, "", err
	}
	found, next = cursor.Page(found, limit, stored.cursor)
	return entries(found), next, nil
}

// ordered reports whether the index of the list is the way to what f selects: the filter has nothing that another index finds sooner.
func ordered(f dlq.Filter) bool {
	held := slices.Contains(f.States, dlq.StateHeld) && f.Destination != ""
	return len(f.IDs) == 0 && f.Job == "" && len(f.JSON) == 0 && !held && len(f.StatesOrDead()) == 1
}

// Count returns how many entries match.
func (s *Store) Count(ctx context.Context, f dlq.Filter) (n int, err error) {
	w, err := s.matching(ctx, f, nil)
	if err != nil {
		return 0, s.failed(err)
	}
	err = s.find(ctx, f, s.sql.in("SELECT count(*) FROM {letters} d")+w.sql(), w.args, func(rows pgx.Rows) error {
		n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		return err
	})
	return n, err
}

// Groups counts matching entries by what they died of, largest first.
func (s *Store) Groups(ctx context.Context, f dlq.Filter) ([]dlq.Group, error) {
	w, err := s.matching(ctx, f, nil)
	if err != nil {
		return nil, s.failed(err)
	}
	query := s.sql.in(`SELECT d.kind, d.destination, d.cause, d.fingerprint, count(*) AS n, min(d.stored_at), max(d.stored_at), max(d.seq)
FROM {letters} d`) + w.sql() + ` GROUP BY d.kind, d.destination, d.cause, d.fingerprint ORDER BY n DESC, d.kind, d.destination, d.cause, d.fingerprint`
	var groups []dlq.Group
	var newest []int64
	err = s.find(ctx, f, query, w.args, func(rows pgx.Rows) error {
		groups, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (g dlq.Group, err error) {
			var kind, destination, cause, fingerprint []byte
			var seq int64
			err = row.Scan(&kind, &destination, &cause, &fingerprint, &g.Count, &g.FirstAt, &g.LastAt, &seq)
			g.Kind, g.Destination, g.Cause, g.Fingerprint = string(kind), string(destination), dlq.Cause(cause), string(fingerprint)
			g.FirstAt, g.LastAt = g.FirstAt.UTC(), g.LastAt.UTC()
			newest = append(newest, seq)
			return g, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return groups, s.addSamples(ctx, groups, newest)
}

// addSamples sets the sample of each group to the error of its newest entry, unless that has gone meanwhile.
func (s *Store) addSamples(ctx context.Context, groups []dlq.Group, newest []int64) error {
	samples := make(map[int64]string, len(newest))
	err := s.read(ctx, s.sql.samples, []any{newest}, func(rows pgx.Rows) error {
		var seq int64
		var text []byte
		_, err := pgx.ForEachRow(rows, []any{&seq, &text}, func() error { samples[seq] = string(text); return nil })
		return err
	})
	for i, seq := range newest {
		groups[i].Sample = samples[seq]
	}
	return err
}

// depthChanges is how many rows of the depth are added up before they are made one.
const depthChanges = 1000

// Depth adds up what triggers recorded.
func (s *Store) Depth(ctx context.Context) (depth dlq.Depth, err error) {
	changes := 0
	var name, cause []byte
	var n, noted int
	err = s.read(ctx, s.sql.depth, nil, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&name, &cause, &n, &noted}, func() error {
			if changes += noted; n > 0 {
				depth.Dead = append(depth.Dead, dlq.DeadDepth{Queue: string(name), Cause: dlq.Cause(cause), Count: n})
			}
			return nil
		})
		return err
	})
	if err != nil {
		return dlq.Depth{}, err
	}
	var oldest *time.Time
	err = s.read(ctx, s.sql.held, nil, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&name, &n, &oldest, &noted}, func() error {
			if changes += noted; n > 0 {
				depth.Held = append(depth.Held, dlq.HeldDepth{Destination: string(name), Count: n, Oldest: known(oldest)})
			}
			return nil
		})
		return err
	})
	if err == nil && changes > depthChanges {
		_, err = s.pool.Exec(ctx, s.sql.compact)
	}
	if err != nil {
		return dlq.Depth{}, s.failed(err)
	}
	return depth, nil
}
