package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq"
)

// Resolve ends reservations, all or, with an error of the store, none.
func (s *Store) Resolve(ctx context.Context, owner string, rs []dlq.Resolution) []error {
	errs := make([]error, len(rs))
	if len(rs) == 0 {
		return errs
	}
	err := s.write(ctx, func(tx pgx.Tx) error {
		reserved, err := s.lockReserved(ctx, tx, rs)
		if err != nil {
			return err
		}
		var end ends
		for i, r := range rs {
			errs[i] = end.resolve(reserved, owner, r)
		}
		return s.apply(ctx, tx, end)
	})
	if err != nil {
		return slices.Repeat([]error{err}, len(errs))
	}
	return errs
}

// reservation is an entry as Resolve sees it.
type reservation struct {
	seq   int64
	state dlq.State
	owner []byte // nil if it is not reserved
}

func (s *Store) lockReserved(ctx context.Context, tx pgx.Tx, rs []dlq.Resolution) (map[string]reservation, error) {
	ids := make([][]byte, len(rs))
	for i, r := range rs {
		ids[i] = []byte(r.ID)
	}
	rows, err := tx.Query(ctx, s.sql.resolve, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[string]reservation, len(rs))
	var r reservation
	var id []byte
	_, err = pgx.ForEachRow(rows, []any{&r.seq, &id, (*string)(&r.state), &r.owner}, func() error {
		found[string(id)] = r
		r.owner = nil
		return nil
	})
	return found, err
}

// ends are the numbers of entries by what becomes of them.
type ends struct{ freed, replayed, removed []int64 }

// resolve decides about one reservation and returns the answer to it.
func (e *ends) resolve(reserved map[string]reservation, owner string, r dlq.Resolution) error {
	found, ok := reserved[r.ID]
	if !ok || found.owner == nil || string(found.owner) != owner {
		return fmt.Errorf("%s: %w", r.ID, dlq.ErrNotReserved)
	}
	switch {
	case r.To == found.state:
		e.freed = append(e.freed, found.seq)
	case r.To == dlq.StateReplayed && found.state == dlq.StateDead:
		e.replayed = append(e.replayed, found.seq)
	case r.To == "" && found.state == dlq.StateHeld:
		e.removed = append(e.removed, found.seq)
	default:
		return fmt.Errorf("%s: a reservation of a %s entry cannot end as %q", r.ID, found.state, r.To)
	}
	delete(reserved, r.ID)
	return nil
}

func (s *Store) apply(ctx context.Context, tx pgx.Tx, e ends) error {
	for _, change := range []struct {
		statement string
		seqs      []int64
	}{{s.sql.free, e.freed}, {s.sql.move, e.replayed}, {s.sql.remove, e.removed}} {
		if len(change.seqs) == 0 {
			continue
		}
		if _, err := tx.Exec(ctx, change.statement, change.seqs); err != nil {
			return err
		}
	}
	return nil
}
