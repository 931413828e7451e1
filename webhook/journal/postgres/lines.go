package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/webhook/ordering"
)

var _ ordering.Queues = (*Store)(nil)

// Whoever changes a line locks its row first. So places are numbered in the order in which they become visible, and no line is left without a head.
const (
	lockLines = `INSERT INTO {lines} AS l (endpoint) SELECT e FROM unnest($1::bytea[]) e ORDER BY e
ON CONFLICT (endpoint) DO UPDATE SET times = l.times`
	insertPlaces = `INSERT INTO {places} (endpoint, seq, tenant, event) SELECT e, {next place}, $2::bytea, $3::bytea FROM unnest($1::bytea[]) e
ON CONFLICT (endpoint, event, tenant) DO NOTHING`
	// makeHeads returns the heads of lines that had none, and those that are the event.
	makeHeads = `WITH fresh AS (
	UPDATE {lines} l SET head = (SELECT min(p.seq) FROM {places} p WHERE p.endpoint = l.endpoint), since = t.at, enqueued_at = t.at, times = 1
	FROM (SELECT clock_timestamp() AS at) t WHERE l.endpoint = ANY ($1::bytea[]) AND l.head IS NULL RETURNING l.endpoint, l.head, l.since
)
SELECT p.endpoint, p.tenant, p.event, f.since FROM fresh f JOIN {places} p ON p.endpoint = f.endpoint AND p.seq = f.head
UNION ALL
SELECT p.endpoint, p.tenant, p.event, l.since FROM {lines} l JOIN {places} p ON p.endpoint = l.endpoint AND p.seq = l.head
WHERE l.endpoint = ANY ($1::bytea[]) AND p.tenant = $2::bytea AND p.event = $3::bytea`

	lockLine     = `SELECT head FROM {lines} WHERE endpoint = $1::bytea FOR UPDATE`
	deletePlace  = `DELETE FROM {places} WHERE endpoint = $1::bytea AND event = $2::bytea AND tenant = $3::bytea RETURNING seq`
	deletePlaces = `DELETE FROM {places} WHERE endpoint = $1::bytea AND tenant = $2::bytea RETURNING seq`
	nextHead     = `WITH next AS (SELECT seq, tenant, event FROM {places} WHERE endpoint = $1::bytea ORDER BY seq LIMIT 1)
UPDATE {lines} l SET head = next.seq, since = t.at, enqueued_at = t.at, times = 1 FROM next, (SELECT clock_timestamp() AS at) t
WHERE l.endpoint = $1::bytea RETURNING l.endpoint, next.tenant, next.event, l.since`
	deleteLine = `DELETE FROM {lines} WHERE endpoint = $1::bytea`

	// staleHeads leaves those that somebody is at to him.
	staleHeads = `WITH stale AS (
	SELECT endpoint FROM {lines} WHERE head IS NOT NULL
		AND enqueued_at <= clock_timestamp() - least($1::bigint * power(2, least(times, 21) - 1), $2::bigint) * interval '1 microsecond'
	ORDER BY enqueued_at LIMIT $3::bigint FOR UPDATE SKIP LOCKED
)
UPDATE {lines} l SET enqueued_at = clock_timestamp(), times = l.times + 1 FROM stale s, {places} p
WHERE l.endpoint = s.endpoint AND p.endpoint = s.endpoint AND p.seq = l.head RETURNING l.endpoint, p.tenant, p.event, l.since`
	// findPlace counts by the key of places.
	findPlace = `SELECT (SELECT count(*) FROM {places} a WHERE a.endpoint = p.endpoint AND a.seq < p.seq), l.endpoint, h.tenant, h.event, l.since
FROM {places} p JOIN {lines} l ON l.endpoint = p.endpoint JOIN {places} h ON h.endpoint = l.endpoint AND h.seq = l.head
WHERE p.endpoint = $1::bytea AND p.event = $2::bytea AND p.tenant = $3::bytea`
	countPlaces = `SELECT count(*) FROM {places} WHERE endpoint = $1::bytea`
)

// Append implements [ordering.Queues].
func (s *Store) Append(ctx context.Context, tenant, event string, endpoints []string) (heads []ordering.Entry, err error) {
	ids := make([][]byte, len(endpoints))
	for i, endpoint := range endpoints {
		ids[i] = []byte(endpoint)
	}
	err = s.write(ctx, beginWrite, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(s.sql.in(lockLines), ids)
		batch.Queue(s.sql.in(insertPlaces), ids, []byte(tenant), []byte(event))
		batch.Queue(s.sql.in(makeHeads), ids, []byte(tenant), []byte(event)).Query(func(rows pgx.Rows) (err error) {
			heads, err = pgx.CollectRows(rows, scanEntry)
			return err
		})
		return tx.SendBatch(ctx, batch).Close()
	})
	return heads, err
}

func scanEntry(row pgx.CollectableRow) (p ordering.Entry, err error) {
	var endpoint, tenant, event []byte
	err = row.Scan(&endpoint, &tenant, &event, &p.Since)
	p.Endpoint, p.Tenant, p.Event, p.Since = string(endpoint), string(tenant), string(event), p.Since.UTC()
	return p, err
}

// Remove implements [ordering.Queues].
func (s *Store) Remove(ctx context.Context, p ordering.Entry) (next ordering.Entry, ok bool, err error) {
	err = s.write(ctx, beginWrite, func(tx pgx.Tx) error {
		next, ok = ordering.Entry{}, false
		var head, left int64
		err := tx.QueryRow(ctx, s.sql.in(lockLine), []byte(p.Endpoint)).Scan(&head)
		if err == nil {
			err = tx.QueryRow(ctx, s.sql.in(deletePlace), []byte(p.Endpoint), []byte(p.Event), []byte(p.Tenant)).Scan(&left)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil && left == head {
			next, ok, err = s.moveOn(ctx, tx, p.Endpoint)
		}
		return err
	})
	return next, ok && err == nil, err
}

// moveOn makes the first place of a line its head. Where there is none, the line goes.
func (s *Store) moveOn(ctx context.Context, tx pgx.Tx, endpoint string) (head ordering.Entry, ok bool, err error) {
	rows, err := tx.Query(ctx, s.sql.in(nextHead), []byte(endpoint))
	if err != nil {
		return head, false, err
	}
	head, err = pgx.CollectExactlyOneRow(rows, scanEntry)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = tx.Exec(ctx, s.sql.in(deleteLine), []byte(endpoint))
		return ordering.Entry{}, false, err
	}
	return head, err == nil, err
}

// Stale implements [ordering.Queues].
func (s *Store) Stale(ctx context.Context, wait, longest time.Duration, limit int) (heads []ordering.Entry, err error) {
	err = s.write(ctx, beginWrite, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.sql.in(staleHeads), wait.Microseconds(), longest.Microseconds(), int64(limit))
		if err != nil {
			return err
		}
		heads, err = pgx.CollectRows(rows, scanEntry)
		return err
	})
	return heads, err
}

// Drop implements [ordering.Queues].
func (s *Store) Drop(ctx context.Context, tenant, endpoint string) (n int, err error) {
	err = s.write(ctx, beginWrite, func(tx pgx.Tx) error {
		n = 0
		var head int64
		err := tx.QueryRow(ctx, s.sql.in(lockLine), []byte(endpoint)).Scan(&head)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, s.sql.in(deletePlaces), []byte(endpoint), []byte(tenant))
		if err != nil {
			return err
		}
		left, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if n = len(left); err == nil && slices.Contains(left, head) {
			_, _, err = s.moveOn(ctx, tx, endpoint)
		}
		return err
	})
	return n, err
}

// Len implements [ordering.Queues].
func (s *Store) Len(ctx context.Context, endpoint string) (n int, err error) {
	err = s.read(ctx, beginRead, s.sql.in(countPlaces), []any{[]byte(endpoint)}, func(rows pgx.Rows) error {
		n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		return err
	})
	return n, err
}

// Ahead implements [ordering.Queues].
func (s *Store) Ahead(ctx context.Context, p ordering.Entry) (n int, head ordering.Entry, ok bool, err error) {
	args := []any{[]byte(p.Endpoint), []byte(p.Event), []byte(p.Tenant)}
	err = s.read(ctx, beginRead, s.sql.in(findPlace), args, func(rows pgx.Rows) error {
		var endpoint, tenant, event []byte
		_, err := pgx.ForEachRow(rows, []any{&n, &endpoint, &tenant, &event, &head.Since}, func() error {
			ok, head.Endpoint, head.Tenant, head.Event, head.Since = true, string(endpoint), string(tenant), string(event), head.Since.UTC()
			return nil
		})
		return err
	})
	return n, head, ok && err == nil, err
}
