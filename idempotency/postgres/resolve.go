package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
)

// completeIn completes a claim inside of a transaction that somebody else commits or rolls back. [idempotency.ErrClaimLost] leaves the
// transaction usable, other errors do not. first is sent with it and before it; read gets its one row.
func (s *Store) completeIn(ctx context.Context, tx pgx.Tx, c idempotency.Completion, first *statement, read func([][]byte) error) error {
	e := completionOf(c)
	if e.Run < 0 || e.Run > maxRun {
		return record.Lost(e.Handle)
	}
	e.name = nameOf(e.Key, e.Job, e.Run)
	conn := tx.Conn()
	if e.fast() {
		t := s.roundTrip(conn)
		err := errors.Join(t.add(ctx, first, nil, read), t.add(ctx, &s.sql.guard, nil, nil))
		missed, addErr := t.addEnds(ctx, []*ending{&e})
		if err = errors.Join(err, addErr); err == nil {
			err = t.send(ctx)
		}
		if err != nil {
			return fmt.Errorf("complete: %w", classify(err))
		}
		if len(missed()) == 0 {
			return nil
		}
	}
	b, t := newRowSet(), s.roundTrip(conn)
	err := errors.Join(t.add(ctx, first, nil, read), t.lock(ctx), b.load(ctx, t, []name{e.name}, &s.sql.loadKeys, &s.sql.loadRuns), t.add(ctx, &s.sql.now, nil, b.readNow))
	if err == nil {
		err = t.send(ctx)
	}
	if err != nil {
		return fmt.Errorf("complete: %w", classify(err))
	}
	e.rewrite(b, false)
	if e.err != nil {
		return e.err
	}
	t = s.roundTrip(conn)
	if err := errors.Join(b.save(ctx, t), t.send(ctx)); err != nil {
		return fmt.Errorf("complete: %w", classify(err))
	}
	return nil
}

// resolve reports whether the claim h was completed by its holder. It waits for a transaction under way that may have done so.
func (s *Store) resolve(ctx context.Context, h idempotency.Handle) (completed bool, err error) {
	n := nameOf(h.Key, h.Job, h.Run)
	err = s.repeat(ctx, func(conn *pgx.Conn, _ bool) error {
		return s.rewrite(ctx, conn, []name{n}, func(b *rowSet) {
			row := b.keys[n.keyID]
			completed = row != nil && row.key == h.Key && row.State == idempotency.StatusCompleted && row.Token == h.Token && row.Holder == n.run
		})
	})
	if err != nil {
		return false, fmt.Errorf("resolve: %w", classify(err))
	}
	return completed, nil
}
