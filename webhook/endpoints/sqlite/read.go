package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Get implements [endpoints.Store].
func (s *Store) Get(ctx context.Context, id string) (r endpoints.Record, err error) {
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		r, err = find(tx, id)
		return err
	})
	return r, unavailable(err)
}

// List implements [endpoints.Store].
func (s *Store) List(ctx context.Context, f endpoints.Filter, after string, limit int) ([]endpoints.Record, error) {
	if limit < 1 {
		return nil, fmt.Errorf("limit %d: must be at least 1", limit)
	}
	query, args := selectRecords, []any{[]byte(after)}
	if f.Tenant != "" {
		query, args = query+" AND tenant = ?", append(args, []byte(f.Tenant))
	}
	if f.State != "" {
		query, args = query+" AND state = ?", append(args, string(f.State))
	}
	if f.NotKey != "" {
		query, args = query+" AND key <> ?", append(args, []byte(f.NotKey))
	}
	return s.records(ctx, query+" ORDER BY id LIMIT ?+0", append(args, limit)...)
}

// Changes implements [endpoints.Store].
func (s *Store) Changes(ctx context.Context, since int64, limit int) ([]endpoints.Record, error) {
	if limit < 1 {
		return nil, fmt.Errorf("limit %d: must be at least 1", limit)
	}
	return s.records(ctx, selectChanges, since, limit)
}

func (s *Store) records(ctx context.Context, query string, args ...any) (found []endpoints.Record, err error) {
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		found, err = scan(tx, query, args...)
		return err
	})
	return found, unavailable(err)
}

// find returns the record of an endpoint that is not deleted.
func find(tx *sqlitefile.Tx, id string) (endpoints.Record, error) {
	found, err := scan(tx, selectRecord, []byte(id))
	if err != nil {
		return endpoints.Record{}, err
	}
	if len(found) == 0 {
		return endpoints.Record{}, webhook.ErrUnknownEndpoint
	}
	return found[0], nil
}

func scan(tx *sqlitefile.Tx, query string, args ...any) ([]endpoints.Record, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []endpoints.Record
	for rows.Next() {
		var r endpoints.Record
		var id, tenant, reason, key []byte
		var state string
		var since sql.NullInt64
		var created, updated int64
		if err := rows.Scan(&id, &tenant, &state, &reason, &since, &r.Settings, &r.Sealed, &key, &created, &updated, &r.Revision, &r.Deleted); err != nil {
			return nil, err
		}
		if r.Deleted {
			r = endpoints.Record{ID: string(id), Tenant: string(tenant), Revision: r.Revision, Deleted: true}
		} else {
			r.ID, r.Tenant, r.State, r.Reason, r.Key = string(id), string(tenant), webhook.State(state), string(reason), string(key)
			r.Since, r.Created, r.Updated = moment(since), time.Unix(0, created).UTC(), time.Unix(0, updated).UTC()
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

// nanos is a time as a column holds it.
func nanos(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

func moment(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.Unix(0, n.Int64).UTC()
}
