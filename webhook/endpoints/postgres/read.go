package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Get implements [endpoints.Store].
func (s *Store) Get(ctx context.Context, id string) (endpoints.Record, error) {
	r, err := find(s.pool.Query(ctx, s.sql.get, []byte(id)))
	return r, failed("read endpoint", err)
}

// List implements [endpoints.Store].
func (s *Store) List(ctx context.Context, f endpoints.Filter, after string, limit int) ([]endpoints.Record, error) {
	if limit < 1 {
		return nil, fmt.Errorf("limit %d: must be at least 1", limit)
	}
	query, args := s.sql.list, []any{[]byte(after)}
	where := func(condition string, arg any) {
		args = append(args, arg)
		query += fmt.Sprintf(condition, len(args))
	}
	if f.Tenant != "" {
		where(" AND tenant = $%d::bytea", []byte(f.Tenant))
	}
	if f.State != "" {
		where(" AND state = $%d::text", string(f.State))
	}
	if f.NotKey != "" {
		where(" AND key <> $%d::bytea", []byte(f.NotKey))
	}
	where(" ORDER BY id LIMIT $%d::bigint", limit)
	found, err := all(s.pool.Query(ctx, query, args...))
	return found, failed("list endpoints", err)
}

// Changes implements [endpoints.Store].
func (s *Store) Changes(ctx context.Context, since int64, limit int) ([]endpoints.Record, error) {
	if limit < 1 {
		return nil, fmt.Errorf("limit %d: must be at least 1", limit)
	}
	found, err := all(s.pool.Query(ctx, s.sql.changes, since, limit))
	return found, failed("read changes of endpoints", err)
}

// values are the columns that callers set, in the order of the statements' arguments.
func values(r endpoints.Record) []any {
	return []any{
		[]byte(r.ID), []byte(r.Tenant), string(r.State), []byte(r.Reason), moment(r.Since), append([]byte{}, r.Settings...), append([]byte{}, r.Sealed...), []byte(r.Key),
	}
}

// moment is a time as a column holds it.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// utc is the reverse.
func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func all(rows pgx.Rows, err error) ([]endpoints.Record, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// one returns the only record, or pgx.ErrNoRows.
func one(rows pgx.Rows, err error) (endpoints.Record, error) {
	if err != nil {
		return endpoints.Record{}, err
	}
	return pgx.CollectOneRow(rows, scan)
}

// find returns the only record, or [webhook.ErrUnknownEndpoint].
func find(rows pgx.Rows, err error) (endpoints.Record, error) {
	r, err := one(rows, err)
	if errors.Is(err, pgx.ErrNoRows) {
		err = webhook.ErrUnknownEndpoint
	}
	return r, err
}

func scan(row pgx.CollectableRow) (endpoints.Record, error) {
	var r endpoints.Record
	var id, tenant, reason, key []byte
	var since *time.Time
	err := row.Scan(&id, &tenant, &r.State, &reason, &since, &r.Settings, &r.Sealed, &key, &r.Created, &r.Updated, &r.Revision, &r.Deleted)
	if err != nil {
		return endpoints.Record{}, err
	}
	if r.Deleted {
		return endpoints.Record{ID: string(id), Tenant: string(tenant), Revision: r.Revision, Deleted: true}, nil
	}
	r.ID, r.Tenant, r.Reason, r.Key = string(id), string(tenant), string(reason), string(key)
	r.Since, r.Created, r.Updated = utc(since), r.Created.UTC(), r.Updated.UTC()
	return r, nil
}
