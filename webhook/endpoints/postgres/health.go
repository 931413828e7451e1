package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Report implements [endpoints.Store].
func (s *Store) Report(ctx context.Context, deltas []endpoints.Delta) ([]endpoints.Health, error) {
	var seen []endpoints.Health
	at := make(map[string]int, len(deltas))
	for len(deltas) > 0 {
		now, later := distinct(deltas)
		var found []endpoints.Health
		err := again(func() (err error) {
			found, err = s.report(ctx, now)
			return err
		})
		if err != nil {
			return nil, failed("report health of endpoints", err)
		}
		for _, h := range found {
			if i, again := at[h.Endpoint]; again {
				seen[i] = h
				continue
			}
			at[h.Endpoint] = len(seen)
			seen = append(seen, h)
		}
		deltas = later
	}
	return seen, nil
}

// distinct takes the first delta of each endpoint: a statement cannot change a row twice.
func distinct(deltas []endpoints.Delta) (first, rest []endpoints.Delta) {
	seen := make(map[string]bool, len(deltas))
	for _, d := range deltas {
		if seen[d.Endpoint] {
			rest = append(rest, d)
			continue
		}
		seen[d.Endpoint] = true
		first = append(first, d)
	}
	return first, rest
}

func (s *Store) report(ctx context.Context, deltas []endpoints.Delta) ([]endpoints.Health, error) {
	n := len(deltas)
	ids, failures := make([][]byte, n), make([]int64, n)
	first, success, last := make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n)
	for i, d := range deltas {
		h := endpoints.Health{}.Add(d) // what is left after its own success
		ids[i], failures[i] = []byte(d.Endpoint), h.Failures
		first[i], success[i], last[i] = moment(h.FailingSince), moment(h.LastSuccess), moment(h.LastFailure)
	}
	rows, err := s.pool.Query(ctx, s.sql.report, ids, failures, first, success, last)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanHealth)
}

// Health implements [endpoints.Store].
func (s *Store) Health(ctx context.Context, id string) (endpoints.Health, error) {
	rows, err := s.pool.Query(ctx, s.sql.health, []byte(id))
	if err != nil {
		return endpoints.Health{}, failed("read health of endpoint", err)
	}
	h, err := pgx.CollectOneRow(rows, scanHealth)
	if errors.Is(err, pgx.ErrNoRows) {
		return endpoints.Health{Endpoint: id}, nil
	}
	return h, failed("read health of endpoint", err)
}

// Failing implements [endpoints.Store].
func (s *Store) Failing(ctx context.Context, ids []string) ([]endpoints.Health, error) {
	names := make([][]byte, len(ids))
	for i, id := range ids {
		names[i] = []byte(id)
	}
	rows, err := s.pool.Query(ctx, s.sql.failing, names)
	if err != nil {
		return nil, failed("read health of endpoints", err)
	}
	found, err := pgx.CollectRows(rows, scanHealth)
	return found, failed("read health of endpoints", err)
}

// Recovered implements [endpoints.Store].
func (s *Store) Recovered(ctx context.Context, id string) error {
	return failed("forget failures of endpoint", again(func() error {
		_, err := s.pool.Exec(ctx, s.sql.recovered, []byte(id))
		return err
	}))
}

func scanHealth(row pgx.CollectableRow) (endpoints.Health, error) {
	var h endpoints.Health
	var id []byte
	var since, success, failure, recovered *time.Time
	err := row.Scan(&id, &h.Failures, &since, &success, &failure, &recovered)
	h.Endpoint, h.FailingSince, h.LastSuccess, h.LastFailure, h.Recovered = string(id), utc(since), utc(success), utc(failure), utc(recovered)
	return h, err
}
