package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// Claim asks for keys and charges an attempt for each one acquired.
func (s *Store) Claim(ctx context.Context, reqs []idempotency.Request) []idempotency.Claim {
	claims := make([]idempotency.Claim, len(reqs))
	if len(reqs) == 0 {
		return claims
	}
	err := s.write(ctx, func(tx *sqlitefile.Tx, now time.Time) error {
		for i, r := range reqs {
			claims[i] = idempotency.Claim{Err: r.Validate()}
			if claims[i].Err != nil {
				continue
			}
			var err error
			if claims[i], err = claim(tx, now, r); err != nil {
				return fmt.Errorf("claim: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		for i := range claims {
			claims[i] = idempotency.Claim{Err: err}
		}
	}
	return claims
}

func claim(tx *sqlitefile.Tx, now time.Time, q idempotency.Request) (idempotency.Claim, error) {
	if q.Key.Value == q.Job {
		c, err := claimFresh(tx, now, q)
		if err != nil || c.Status == idempotency.StatusAcquired {
			return c, err
		}
	}
	r, err := load(tx, q.Key, record.RunID{Job: q.Job, Run: q.Run})
	if err != nil {
		return idempotency.Claim{}, err
	}
	c, change := r.Claim(now, q)
	return c, save(tx, r, change)
}

// claimFresh claims the key of a job that has no record yet. It returns no status if there is one.
func claimFresh(tx *sqlitefile.Tx, now time.Time, q idempotency.Request) (idempotency.Claim, error) {
	c := record.Acquired(now, q, record.Token(now, 0), q.AttemptBase+1)
	res, err := tx.Exec(insertFresh, q.Key.Value, q.Key.Scope, c.Token, q.Fingerprint[:], q.Run, q.Owner, c.Until.UnixNano(), c.Attempt)
	if err != nil || res.Changed == 0 {
		return idempotency.Claim{}, err
	}
	return c, nil
}
