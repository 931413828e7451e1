package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/cursor"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// List returns entries without their messages, newest first.
func (s *Store) List(ctx context.Context, f dlq.Filter, after string, limit int) (entries []dlq.Entry, next string, err error) {
	if limit < 1 {
		return nil, "", errors.New("list dead letters: limit must be at least 1")
	}
	w, err := matching(f)
	if err != nil {
		return nil, "", err
	}
	if after != "" {
		c, err := cursor.Parse(after)
		if err != nil {
			return nil, "", err
		}
		w.add("(d.stored_at, d.seq) < (?, ?)", c.Micro, c.Seq)
	}
	query := `SELECT ` + entryColumns + ` FROM caisson_dead_letters d` + w.sql() + ` ORDER BY d.stored_at DESC, d.seq DESC LIMIT ?`
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		entries, next = nil, ""
		found, err := selectEntries(tx, query, append(w.args, limit+1)...)
		if err != nil {
			return err
		}
		found, next = cursor.Page(found, limit, stored.cursor)
		for _, e := range found {
			entries = append(entries, e.Entry)
		}
		return nil
	})
	return entries, next, unavailable(err)
}

// Count returns how many entries match.
func (s *Store) Count(ctx context.Context, f dlq.Filter) (int, error) {
	w, err := matching(f)
	if err != nil {
		return 0, err
	}
	n := 0
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		return tx.QueryRow(`SELECT count(*) FROM caisson_dead_letters d`+w.sql(), w.args, &n)
	})
	return n, unavailable(err)
}

// Groups counts matching entries by what they died of, largest first.
func (s *Store) Groups(ctx context.Context, f dlq.Filter) ([]dlq.Group, error) {
	w, err := matching(f)
	if err != nil {
		return nil, err
	}
	query := `SELECT g.kind, g.destination, g.cause, g.fingerprint, g.n, g.first, g.last, sample.error
FROM (SELECT d.kind, d.destination, d.cause, d.fingerprint, count(*) n, min(d.stored_at) first, max(d.stored_at) last, max(d.seq) newest
	FROM caisson_dead_letters d` + w.sql() + ` GROUP BY d.kind, d.destination, d.cause, d.fingerprint) g
JOIN caisson_dead_letters sample ON sample.seq = g.newest
ORDER BY g.n DESC, g.kind, g.destination, g.cause, g.fingerprint`
	var groups []dlq.Group
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		groups = nil
		rows, err := tx.Query(query, w.args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var g dlq.Group
			var first, last sql.NullInt64
			err := rows.Scan(&g.Kind, &g.Destination, (*string)(&g.Cause), &g.Fingerprint, &g.Count, &first, &last, &g.Sample)
			if err != nil {
				return err
			}
			g.FirstAt, g.LastAt = fromMicros(first), fromMicros(last)
			groups = append(groups, g)
		}
		return rows.Err()
	})
	return groups, unavailable(err)
}

// Depth reads counters that triggers keep.
func (s *Store) Depth(ctx context.Context) (dlq.Depth, error) {
	var depth dlq.Depth
	err := s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		depth = dlq.Depth{}
		rows, err := tx.Query(depthDead)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var d dlq.DeadDepth
			if err := rows.Scan(&d.Queue, (*string)(&d.Cause), &d.Count); err != nil {
				return err
			}
			depth.Dead = append(depth.Dead, d)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		depth.Held, err = heldDepth(tx)
		return err
	})
	return depth, unavailable(err)
}

func heldDepth(tx *sqlitefile.Tx) ([]dlq.HeldDepth, error) {
	rows, err := tx.Query(depthHeld)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var held []dlq.HeldDepth
	for rows.Next() {
		var h dlq.HeldDepth
		var oldest sql.NullInt64
		if err := rows.Scan(&h.Destination, &h.Count, &oldest); err != nil {
			return nil, err
		}
		h.Oldest = fromMicros(oldest)
		held = append(held, h)
	}
	return held, rows.Err()
}
