package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// Reserve gives matching entries to one owner, oldest first.
func (s *Store) Reserve(ctx context.Context, f dlq.Filter, r dlq.Reservation) ([]dlq.Entry, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	w, err := matching(f, dlq.StateDead, dlq.StateHeld)
	if err != nil {
		return nil, err
	}
	var entries []dlq.Entry
	err = s.file.Write(ctx, false, func(tx *sqlitefile.Tx) error {
		entries, err = reserve(tx, w, r, time.Now())
		return err
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return entries, nil
}

func reserve(tx *sqlitefile.Tx, w *where, r dlq.Reservation, now time.Time) ([]dlq.Entry, error) {
	found, err := candidates(tx, w, r, now)
	if err != nil {
		return nil, err
	}
	entries := make([]dlq.Entry, len(found))
	for i := range found {
		if _, err := tx.Exec(reserveEntry, r.Owner, now.Add(r.For).UnixMicro(), found[i].seq); err != nil {
			return nil, err
		}
		if err := found[i].loadMessage(tx); err != nil {
			return nil, err
		}
		entries[i] = found[i].Entry
	}
	return entries, nil
}

// candidates returns the entries that r may have, without their messages, cut at its limits.
func candidates(tx *sqlitefile.Tx, w *where, r dlq.Reservation, now time.Time) ([]stored, error) {
	query := `SELECT ` + entryColumns + `, d.size FROM caisson_dead_letters d` + w.sql() + ` AND ` + unreserved +
		` ORDER BY d.stored_at, d.seq LIMIT ?`
	args := append(append([]any{}, w.args...), now.UnixMicro(), r.Limit)
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []stored
	bytes := 0
	for rows.Next() {
		var size int
		s, err := scanEntry(rows, &size)
		if err != nil {
			return nil, err
		}
		bytes += size
		if r.MaxBytes > 0 && bytes > r.MaxBytes && len(found) > 0 {
			break
		}
		found = append(found, s)
	}
	return found, rows.Err()
}

// Resolve ends reservations.
func (s *Store) Resolve(ctx context.Context, owner string, rs []dlq.Resolution) []error {
	errs := make([]error, len(rs))
	if len(rs) == 0 {
		return errs
	}
	err := s.file.Write(ctx, true, func(tx *sqlitefile.Tx) error {
		for i, r := range rs {
			refused, err := resolve(tx, owner, r, time.Now())
			if err != nil {
				return fmt.Errorf("resolve %s: %w", r.ID, err)
			}
			errs[i] = refused
		}
		return nil
	})
	if err != nil {
		return slices.Repeat([]error{unavailable(err)}, len(errs))
	}
	return errs
}

// resolve ends one reservation. refused is the answer to this one; err is a failure of the store.
func resolve(tx *sqlitefile.Tx, owner string, r dlq.Resolution, now time.Time) (refused, err error) {
	seq, state, holder, err := find(tx, r.ID)
	if errors.Is(err, dlq.ErrNotFound) || err == nil && (!holder.Valid || holder.String != owner) {
		return fmt.Errorf("%s: %w", r.ID, dlq.ErrNotReserved), nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case r.To == state:
		_, err = tx.Exec(freeEntry, seq)
	case r.To == dlq.StateReplayed && state == dlq.StateDead:
		_, err = tx.Exec(closeEntry, now.UnixMicro(), seq)
	case r.To == "" && state == dlq.StateHeld:
		err = remove(tx, seq)
	default:
		return fmt.Errorf("%s: a reservation of a %s entry cannot end as %q", r.ID, state, r.To), nil
	}
	return nil, err
}
