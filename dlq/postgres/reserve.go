package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/headers"
)

// Reserve gives matching entries to one owner, oldest first.
func (s *Store) Reserve(ctx context.Context, f dlq.Filter, r dlq.Reservation) ([]dlq.Entry, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if len(f.JSON) > 0 {
		found, err := s.reserveJSON(ctx, f, r)
		return entries(found), err
	}
	w, err := s.matching(ctx, f, reservable, unreserved)
	if err != nil {
		return nil, s.failed(err)
	}
	found, err := s.reserve(ctx, w, r, ordered(f))
	return entries(found), err
}

var reservable = []dlq.State{dlq.StateDead, dlq.StateHeld}

// reserve reserves what w selects. It skips rows that another transaction has locked; if nothing else is left it waits for them, since they
// may become free.
func (s *Store) reserve(ctx context.Context, w *where, r dlq.Reservation, ordered bool) (found []stored, err error) {
	for _, locked := range []string{" SKIP LOCKED", ""} {
		err = s.write(ctx, func(tx pgx.Tx) error {
			if ordered {
				if _, err := tx.Exec(ctx, inOrder); err != nil {
					return err
				}
			}
			seqs, err := s.pick(ctx, tx, w, r, locked)
			if err != nil || len(seqs) == 0 {
				return err
			}
			found, err = s.take(ctx, tx, seqs, r)
			return err
		})
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

// pick locks the oldest entries that w selects and returns those that r may have.
func (s *Store) pick(ctx context.Context, tx pgx.Tx, w *where, r dlq.Reservation, locked string) (seqs []int64, err error) {
	query := s.sql.in("SELECT d.seq, d.size FROM {letters} d") + w.sql() + " ORDER BY d.stored_at, d.seq LIMIT " + strconv.Itoa(r.Limit) +
		" FOR UPDATE OF d" + locked
	rows, err := tx.Query(ctx, query, w.args...)
	if err != nil {
		return nil, err
	}
	bytes, full := 0, false
	var seq int64
	var size int
	_, err = pgx.ForEachRow(rows, []any{&seq, &size}, func() error {
		bytes += size
		if full = full || r.MaxBytes > 0 && bytes > r.MaxBytes && len(seqs) > 0; !full {
			seqs = append(seqs, seq)
		}
		return nil
	})
	return seqs, err
}

// take reserves entries that are locked and returns them with their messages.
func (s *Store) take(ctx context.Context, tx pgx.Tx, seqs []int64, r dlq.Reservation) ([]stored, error) {
	rows, err := tx.Query(ctx, s.sql.take, seqs, []byte(r.Owner), r.For.Microseconds())
	if err != nil {
		return nil, err
	}
	found, err := collect(rows, false)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b stored) int { return cmp.Or(a.StoredAt.Compare(b.StoredAt), cmp.Compare(a.seq, b.seq)) })
	at := make(map[int64]*stored, len(found))
	for i := range found {
		at[found[i].seq] = &found[i]
	}
	if rows, err = tx.Query(ctx, s.sql.messages, seqs); err != nil {
		return nil, err
	}
	var seq int64
	var body, encoded []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &body, &encoded}, func() (err error) {
		if e := at[seq]; e != nil {
			e.Message.Body = body
			if e.Message.Headers, err = headers.Decode(encoded); err != nil {
				err = fmt.Errorf("dead letter %s: %w", e.ID, err)
			}
		}
		return err
	})
	return found, err
}

// reserveJSON reserves by a filter with JSON. Searching all payloads for each chunk of a replay would take long: what a search found is
// remembered until it is used up.
func (s *Store) reserveJSON(ctx context.Context, f dlq.Filter, r dlq.Reservation) ([]stored, error) {
	base := f
	base.JSON = nil
	filter := fmt.Sprintf("%+v", f)
	found, left, err := s.reserveOf(ctx, base, r, s.picks.takeAll(filter))
	if err == nil && len(found) == 0 {
		var seqs []int64
		if seqs, err = s.search(ctx, f, reservable); err == nil {
			found, left, err = s.reserveOf(ctx, base, r, seqs)
		}
	}
	if err == nil {
		s.picks.keep(filter, left)
	}
	return found, err
}

// reserveOf reserves the first of seqs that f selects, and returns those that are left.
func (s *Store) reserveOf(ctx context.Context, f dlq.Filter, r dlq.Reservation, seqs []int64) (found []stored, left []int64, err error) {
	for len(seqs) > 0 {
		chunk := seqs[:min(len(seqs), 4*r.Limit)]
		w, err := s.matching(ctx, f, reservable, unreserved)
		if err != nil {
			return nil, nil, err
		}
		w.add("d.seq = ANY (" + w.arg(chunk, "bigint[]") + ")")
		if found, err = s.reserve(ctx, w, r, false); err != nil {
			return nil, nil, err
		}
		if n := len(found); n > 0 {
			return found, seqs[slices.Index(seqs, found[n-1].seq)+1:], nil
		}
		seqs = seqs[len(chunk):]
	}
	return nil, nil, nil
}

// search returns the numbers of all entries that f selects and nobody has reserved, oldest first.
func (s *Store) search(ctx context.Context, f dlq.Filter, only []dlq.State) (seqs []int64, err error) {
	w, err := s.matching(ctx, f, only, unreserved)
	if err != nil {
		return nil, s.failed(err)
	}
	err = s.find(ctx, f, s.sql.in("SELECT d.seq FROM {letters} d")+w.sql()+" ORDER BY d.stored_at, d.seq", w.args, func(rows pgx.Rows) error {
		seqs, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	return seqs, err
}
