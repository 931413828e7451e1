package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/webhook/ordering"
)

var _ ordering.Queues = (*Store)(nil)

// Append implements [ordering.Queues].
func (s *Store) Append(ctx context.Context, tenant, event string, endpoints []string) (heads []ordering.Entry, err error) {
	err = s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		heads = nil
		for _, endpoint := range endpoints {
			if _, err := tx.Exec(insertPlace, endpoint, tenant, event); err != nil {
				return err
			}
			head, err := headOf(tx, endpoint)
			switch {
			case errors.Is(err, sql.ErrNoRows):
				if head, _, err = makeHead(tx, endpoint); err != nil {
					return err
				}
			case err != nil:
				return err
			case head.Event != event || head.Tenant != tenant:
				continue
			}
			heads = append(heads, head)
		}
		return nil
	})
	return heads, unavailable(err)
}

// headOf returns the head of a line, or [sql.ErrNoRows].
func headOf(tx *sqlitefile.Tx, endpoint string) (ordering.Entry, error) {
	head := ordering.Entry{Endpoint: endpoint}
	var seq, since int64
	err := tx.QueryRow(selectHead, []any{endpoint}, &seq, &head.Tenant, &head.Event, &since)
	head.Since = time.UnixMicro(since).UTC()
	return head, err
}

// makeHead makes the first place of a line its head. Where there is none, the line goes.
func makeHead(tx *sqlitefile.Tx, endpoint string) (head ordering.Entry, ok bool, err error) {
	now := time.Now().Truncate(time.Microsecond).UTC()
	head = ordering.Entry{Endpoint: endpoint, Since: now}
	var seq int64
	err = tx.QueryRow(firstPlace, []any{endpoint}, &seq, &head.Tenant, &head.Event)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.Exec(deleteLine, endpoint)
		return ordering.Entry{}, false, err
	}
	if err != nil {
		return ordering.Entry{}, false, err
	}
	_, err = tx.Exec(insertLine, endpoint, seq, now.UnixMicro())
	return head, err == nil, err
}

// Remove implements [ordering.Queues].
func (s *Store) Remove(ctx context.Context, p ordering.Entry) (next ordering.Entry, ok bool, err error) {
	err = s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		next, ok = ordering.Entry{}, false
		head, err := headOf(tx, p.Endpoint)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		var seq int64
		err = tx.QueryRow(deletePlace, []any{p.Endpoint, p.Event, p.Tenant}, &seq)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil || head.Event != p.Event || head.Tenant != p.Tenant {
			return err
		}
		next, ok, err = makeHead(tx, p.Endpoint)
		return err
	})
	return next, ok, unavailable(err)
}

// Stale implements [ordering.Queues].
func (s *Store) Stale(ctx context.Context, wait, longest time.Duration, limit int) (heads []ordering.Entry, err error) {
	err = s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		now := time.Now().UnixMicro()
		heads, err = selectEntries(tx, selectStale, now, wait.Microseconds(), longest.Microseconds(), limit)
		if err != nil {
			return err
		}
		for _, head := range heads {
			if _, err := tx.Exec(touchLine, now, head.Endpoint); err != nil {
				return err
			}
		}
		return nil
	})
	return heads, unavailable(err)
}

func selectEntries(tx *sqlitefile.Tx, query string, args ...any) (found []ordering.Entry, err error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p ordering.Entry
		var since int64
		if err := rows.Scan(&p.Endpoint, &p.Tenant, &p.Event, &since); err != nil {
			return nil, err
		}
		p.Since = time.UnixMicro(since).UTC()
		found = append(found, p)
	}
	return found, rows.Err()
}

// Drop implements [ordering.Queues].
func (s *Store) Drop(ctx context.Context, tenant, endpoint string) (n int, err error) {
	err = s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		n = 0
		head, err := headOf(tx, endpoint)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		res, err := tx.Exec(deletePlaces, endpoint, tenant)
		if err != nil {
			return err
		}
		if n = int(res.Changed); head.Tenant == tenant {
			_, _, err = makeHead(tx, endpoint)
		}
		return err
	})
	return n, unavailable(err)
}

// Len implements [ordering.Queues].
func (s *Store) Len(ctx context.Context, endpoint string) (n int, err error) {
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error { return tx.QueryRow(countPlaces, []any{endpoint}, &n) })
	return n, unavailable(err)
}

// Ahead implements [ordering.Queues].
func (s *Store) Ahead(ctx context.Context, p ordering.Entry) (n int, head ordering.Entry, ok bool, err error) {
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		var seq int64
		err := tx.QueryRow(placeOf, []any{p.Endpoint, p.Event, p.Tenant}, &seq)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = tx.QueryRow(countAhead, []any{p.Endpoint, seq}, &n)
		}
		if err == nil {
			head, err = headOf(tx, p.Endpoint)
		}
		ok = err == nil
		return err
	})
	return n, head, ok, unavailable(err)
}
