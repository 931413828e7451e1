package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/journal/internal/row"
)

// logRows is how many attempts one statement inserts.
const logRows = 1000

// Log implements [journal.Store].
func (s *Store) Log(ctx context.Context, attempts []journal.Attempt) error {
	for batch := range slices.Chunk(attempts, logRows) {
		var c columns
		for _, a := range batch {
			c.add(row.Of(a))
		}
		err := s.write(ctx, s.sql.writeAttempts, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, s.sql.insertAttempts, c.args()...)
			return err
		})
		if err != nil {
			return fmt.Errorf("log %d webhook attempts: %w", len(batch), err)
		}
	}
	return nil
}

// columns are attempts turned on their side, as arrays for insertAttempts.
type columns struct {
	ats                                []time.Time
	tenants, endpoints, events, jobs   [][]byte
	numbers, statuses                  []int32
	durations                          []int64
	phases, excerpts, errors, requests []string
	resent, cutOff                     []bool
}

func (c *columns) add(a journal.Attempt) {
	c.ats = append(c.ats, a.At)
	c.tenants, c.endpoints = append(c.tenants, []byte(a.Tenant)), append(c.endpoints, []byte(a.Endpoint))
	c.events, c.jobs = append(c.events, []byte(a.Event)), append(c.jobs, []byte(a.Job))
	c.numbers, c.statuses = append(c.numbers, int32(min(a.Number, math.MaxInt32))), append(c.statuses, int32(min(a.Status, math.MaxInt32))) //nolint:gosec // bounded
	c.durations = append(c.durations, int64(a.Duration))
	c.phases, c.excerpts = append(c.phases, a.Phase), append(c.excerpts, a.Excerpt)
	c.errors, c.requests = append(c.errors, a.Error), append(c.requests, a.RequestID)
	c.resent, c.cutOff = append(c.resent, a.Resent), append(c.cutOff, a.CutOff)
}

func (c *columns) args() []any {
	return []any{
		c.ats, c.tenants, c.endpoints, c.events, c.jobs, c.numbers, c.statuses, c.phases, c.durations, c.excerpts, c.errors, c.requests,
		c.resent, c.cutOff,
	}
}

// Attempts implements [journal.Store].
func (s *Store) Attempts(ctx context.Context, f journal.AttemptFilter, after string, limit int) (attempts []journal.Attempt, next string, err error) {
	if limit < 1 {
		return nil, "", errors.New("list webhook attempts: limit must be at least 1")
	}
	begin, query, args, err := s.listAttempts(f, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	var seqs []int64
	err = s.read(ctx, begin, query, args, func(rows pgx.Rows) error {
		attempts, seqs, err = collect(rows)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if len(attempts) > limit {
		attempts = attempts[:limit]
		next = row.At(attempts[limit-1].At, seqs[limit-1]).String()
	}
	return attempts, next, nil
}

// listAttempts writes the query of one page, and how its transaction begins.
func (s *Store) listAttempts(f journal.AttemptFilter, after string, limit int) (begin, query string, args []any, err error) {
	w := &where{}
	for _, c := range []struct{ column, value string }{{"a.tenant", f.Tenant}, {"a.endpoint", f.Endpoint}, {"a.event", f.Event}} {
		if c.value != "" {
			w.add(c.column+" = ?::bytea", []byte(c.value))
		}
	}
	if f.Failed {
		w.add("a.status NOT BETWEEN 200 AND 299")
	}
	w.between("a.at", f.From, f.To)
	if after != "" {
		place, err := row.Parse(after)
		if err != nil {
			return "", "", nil, err
		}
		w.add("(a.at, a.seq) < (?::timestamptz, ?::bigint)", place.Time(), place.Seq)
	}
	begin, from := beginPage, "{attempts} a"+w.sql("WHERE")
	if f.Event != "" && f.Endpoint == "" {
		// The attempts of one event lie together but in another order. OFFSET keeps the planner from walking all attempts by time to spare
		// itself the sorting of few.
		begin, from = beginRead, "(SELECT * FROM "+from+" OFFSET 0) a"
	}
	query = s.sql.in("SELECT " + attemptColumns + " FROM " + from + " ORDER BY a.at DESC, a.seq DESC LIMIT " + itoa(limit))
	return begin, query, w.args, nil
}

func collect(rows pgx.Rows) (found []journal.Attempt, seqs []int64, err error) {
	for rows.Next() {
		var a journal.Attempt
		var seq int64
		var tenant, endpoint, event, job []byte
		if err := rows.Scan(&seq, &a.At, &tenant, &endpoint, &event, &job, &a.Number, &a.Status, &a.Phase, (*int64)(&a.Duration), &a.Excerpt,
			&a.Error, &a.RequestID, &a.Resent, &a.CutOff); err != nil {
			return nil, nil, err
		}
		a.Tenant, a.Endpoint, a.Event, a.Job, a.At = string(tenant), string(endpoint), string(event), string(job), a.At.UTC()
		found, seqs = append(found, a), append(seqs, seq)
	}
	return found, seqs, rows.Err()
}

// Tried implements [journal.Store].
func (s *Store) Tried(ctx context.Context, tenant, endpoint string, events []string) (map[string]bool, error) {
	ids := make([][]byte, len(events))
	for i, id := range events {
		ids[i] = []byte(id)
	}
	tried := make(map[string]bool, len(events))
	err := s.read(ctx, beginRead, s.sql.selectTried, []any{[]byte(endpoint), ids, []byte(tenant)}, func(rows pgx.Rows) error {
		var id []byte
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { tried[string(id)] = true; return nil })
		return err
	})
	return tried, err
}
