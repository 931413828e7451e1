package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// step is how many entries one transaction of Purge or Expire changes.
const step = 1000

// Purge marks matching entries as purged and drops their messages. With an error it returns how many were purged before.
func (s *Store) Purge(ctx context.Context, f dlq.Filter) (total int, err error) {
	purgeable := []dlq.State{dlq.StateDead, dlq.StateHeld, dlq.StateReplayed}
	for {
		seqs, err := s.search(ctx, f, purgeable)
		if err != nil || len(seqs) == 0 {
			return total, err
		}
		base := f
		base.JSON = nil // was searched for, and payloads do not change
		for chunk := range slices.Chunk(seqs, step) {
			w, err := s.matching(ctx, base, purgeable, unreserved)
			if err != nil {
				return total, s.failed(err)
			}
			w.add("d.seq = ANY (" + w.arg(chunk, "bigint[]") + ")")
			n, err := s.purge(ctx, w)
			if total += n; err != nil {
				return total, err
			}
		}
	}
}

// purge purges what w selects in one transaction.
func (s *Store) purge(ctx context.Context, w *where) (n int, err error) {
	// A change in an entry that is past its retention keeps it: it moves to the newest generation.
	update := s.sql.in(`UPDATE {letters} d SET gen = {newest letters}, state = 'purged', changed_at = clock_timestamp(), size = 0, json = 0,
	owner = NULL, reserved_until = NULL`) + w.sql() + " RETURNING d.seq"
	err = s.write(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, update, w.args...)
		if err != nil {
			return err
		}
		seqs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		n = len(seqs)
		_, err = tx.Exec(ctx, s.sql.in("DELETE FROM {messages} WHERE seq = ANY ($1::bigint[])"), seqs)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Expire opens a new generation of entries if it is time, and drops generations past retention, after moving entries that changed later, held
// and reserved ones to the newest. An entry may so stay up to [Config.Generation] longer, and one call may remove more than limit. If
// retention is less than two generations it deletes single entries instead, at most limit. It also removes audit records past theirs.
func (s *Store) Expire(ctx context.Context, retention time.Duration, limit int) (int, error) {
	if _, err := s.pool.Exec(ctx, s.sql.expireAudit, audit.Retention.Microseconds()); err != nil {
		return 0, s.failed(err)
	}
	letters := family(s.pool, s.cfg.Schema, lettersTable, fmt.Sprintf(neededEntry, retention.Microseconds()))
	messages := family(s.pool, s.cfg.Schema, messagesTable, s.sql.in(neededMessage))
	for _, g := range []*pgdb.Generations{&letters, &messages} {
		g.Every, g.Keep = s.cfg.Generation, retention
		if _, err := g.Advance(ctx); err != nil {
			return 0, s.failed(err)
		}
	}
	if retention < 2*s.cfg.Generation {
		return s.expireEach(ctx, retention, limit)
	}
	removed, err := letters.Drop(ctx)
	if err == nil {
		_, err = messages.Drop(ctx) // after the entries: a message stays for as long as its entry does
	}
	if err == nil {
		_, err = s.pool.Exec(ctx, s.sql.forget)
	}
	return int(removed), s.failed(err)
}

// expireEach deletes at most limit entries, in steps.
func (s *Store) expireEach(ctx context.Context, retention time.Duration, limit int) (total int, err error) {
	for total < limit {
		want, n := min(step, limit-total), 0
		err := s.write(ctx, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, s.sql.expire, retention.Microseconds(), int64(want)).Scan(&n)
		})
		if err != nil {
			return total, err
		}
		if total += n; n < want {
			break
		}
	}
	return total, nil
}
