package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Report implements [endpoints.Store].
func (s *Store) Report(ctx context.Context, deltas []endpoints.Delta) (seen []endpoints.Health, err error) {
	if len(deltas) == 0 {
		return nil, nil
	}
	err = s.file.Write(ctx, false, func(tx *sqlitefile.Tx) error {
		seen = make([]endpoints.Health, 0, len(deltas))
		at := make(map[string]int, len(deltas))
		for _, d := range deltas {
			if there, err := exists(tx, d.Endpoint); err != nil || !there {
				if err != nil {
					return err
				}
				continue
			}
			h, err := health(tx, d.Endpoint)
			if err != nil {
				return err
			}
			h = h.Add(d)
			if err := keep(tx, h); err != nil {
				return err
			}
			if i, again := at[d.Endpoint]; again {
				seen[i] = h
				continue
			}
			at[d.Endpoint] = len(seen)
			seen = append(seen, h)
		}
		return nil
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return seen, nil
}

// Health implements [endpoints.Store].
func (s *Store) Health(ctx context.Context, id string) (h endpoints.Health, err error) {
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		h, err = health(tx, id)
		return err
	})
	return h, unavailable(err)
}

// Failing implements [endpoints.Store].
func (s *Store) Failing(ctx context.Context, ids []string) (found []endpoints.Health, err error) {
	err = s.file.Read(ctx, func(tx *sqlitefile.Tx) error {
		for _, id := range ids {
			h, err := health(tx, id)
			if err != nil {
				return err
			}
			if h.Failures > 0 {
				found = append(found, h)
			}
		}
		return nil
	})
	return found, unavailable(err)
}

// Recovered implements [endpoints.Store].
func (s *Store) Recovered(ctx context.Context, id string) error {
	return unavailable(s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		there, err := exists(tx, id)
		if err != nil || !there {
			return err
		}
		h, err := health(tx, id)
		if err != nil {
			return err
		}
		return keep(tx, h.Forget(time.Now()))
	}))
}

// exists reports whether there is an endpoint that is not deleted.
func exists(tx *sqlitefile.Tx, id string) (bool, error) {
	var one int
	err := tx.QueryRow(selectExists, []any{[]byte(id)}, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func health(tx *sqlitefile.Tx, id string) (endpoints.Health, error) {
	h := endpoints.Health{Endpoint: id}
	var since, success, failure, recovered sql.NullInt64
	err := tx.QueryRow(selectHealth, []any{[]byte(id)}, &h.Failures, &since, &success, &failure, &recovered)
	if errors.Is(err, sql.ErrNoRows) {
		return h, nil
	}
	h.FailingSince, h.LastSuccess, h.LastFailure, h.Recovered = moment(since), moment(success), moment(failure), moment(recovered)
	return h, err
}

func keep(tx *sqlitefile.Tx, h endpoints.Health) error {
	_, err := tx.Exec(upsertHealth, []byte(h.Endpoint), h.Failures, nanos(h.FailingSince), nanos(h.LastSuccess), nanos(h.LastFailure), nanos(h.Recovered))
	return err
}
