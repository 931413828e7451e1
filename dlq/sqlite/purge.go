package sqlite

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// step is how many entries one transaction of Purge or Expire changes.
const step = 200

// Purge marks matching entries as purged and drops their messages. With an error it returns how many were purged before.
func (s *Store) Purge(ctx context.Context, f dlq.Filter) (int, error) {
	w, err := matching(f, dlq.StateDead, dlq.StateHeld, dlq.StateReplayed)
	if err != nil {
		return 0, err
	}
	query := `UPDATE caisson_dead_letters SET state = 'purged', changed_at = ?, size = 0, owner = NULL, reserved_until = NULL
WHERE seq IN (SELECT d.seq FROM caisson_dead_letters d` + w.sql() + ` AND ` + unreserved + ` LIMIT ?) RETURNING seq`
	return s.inSteps(ctx, true, -1, func(tx *sqlitefile.Tx, limit int) ([]int64, error) {
		now := time.Now().UnixMicro()
		args := append([]any{now}, w.args...)
		return seqs(tx, query, append(args, now, limit)...)
	})
}

// Expire deletes entries that have not changed for retention, in steps, and audit records past theirs.
func (s *Store) Expire(ctx context.Context, retention time.Duration, limit int) (int, error) {
	err := s.file.Write(ctx, false, func(tx *sqlitefile.Tx) error {
		_, err := tx.Exec(expireAudit, time.Now().Add(-audit.Retention).UnixMicro())
		return err
	})
	if err != nil {
		return 0, unavailable(err)
	}
	return s.inSteps(ctx, false, max(0, limit), func(tx *sqlitefile.Tx, limit int) ([]int64, error) {
		now := time.Now()
		return seqs(tx, expireEntries, now.Add(-retention).UnixMicro(), now.UnixMicro(), limit)
	})
}

// inSteps calls change until it changes nothing more or limit entries in all (none if negative), and drops the messages of the rows
// that it returns.
func (s *Store) inSteps(
	ctx context.Context, durable bool, limit int, change func(tx *sqlitefile.Tx, limit int) ([]int64, error),
) (int, error) {
	total := 0
	for total != limit {
		want, changed := step, 0
		if limit >= 0 {
			want = min(step, limit-total)
		}
		err := s.file.Write(ctx, durable, func(tx *sqlitefile.Tx) error {
			rows, err := change(tx, want)
			if err != nil {
				return err
			}
			changed = len(rows)
			for _, seq := range rows {
				if _, err := tx.Exec(deleteMessage, seq); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return total, unavailable(err)
		}
		total += changed
		if changed < want {
			break
		}
	}
	return total, nil
}
