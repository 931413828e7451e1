package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/sqlitefile"
)

var never sql.NullInt64

func at(nanos int64) sql.NullInt64 { return sql.NullInt64{Int64: nanos, Valid: true} }

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
		if err != nil || c.Status == idempotency.Acquired {
			return c, err
		}
	}
	r, err := load(tx, q.Key, runID{q.Job, q.Run})
	if err != nil {
		return idempotency.Claim{}, err
	}
	conflict := r.row.payload != nil && idempotency.Fingerprint(r.row.payload) != q.Fingerprint
	switch {
	case r.row.state == idempotency.Completed && !conflict:
		return idempotency.Claim{Status: idempotency.Completed, Result: r.row.result}, r.finish(tx)
	case r.run.closed:
		return idempotency.Claim{Status: idempotency.Closed}, nil
	case conflict:
		return idempotency.Claim{Status: idempotency.Conflict}, nil
	case r.row.state == idempotency.Acquired && r.row.until.Int64 > now.UnixNano():
		return waiting(idempotency.Busy, r.row.until, now), nil
	case r.run.notBefore.Int64 > now.UnixNano():
		return waiting(idempotency.NotDue, r.run.notBefore, now), nil
	}
	return r.acquire(tx, now, q)
}

// claimFresh claims the key of a job that has no record yet. It returns no status if there is one.
func claimFresh(tx *sqlitefile.Tx, now time.Time, q idempotency.Request) (idempotency.Claim, error) {
	c := acquired(now, q, token(now, 0), q.AttemptBase+1)
	res, err := tx.Exec(insertFresh, q.Key.Value, q.Key.Scope, c.Token, q.Fingerprint[:], q.Run, q.Owner, c.Until.UnixNano(), c.Attempt)
	if err != nil || res.Changed == 0 {
		return idempotency.Claim{}, err
	}
	return c, nil
}

// acquire gives the key to q and charges its run.
func (r *records) acquire(tx *sqlitefile.Tx, now time.Time, q idempotency.Request) (idempotency.Claim, error) {
	if r.displaced.exists {
		if err := insertRun(tx, r.row.holder, r.displaced); err != nil {
			return idempotency.Claim{}, err
		}
	}
	if !r.run.exists {
		r.run = ledger{exists: true, attempt: q.AttemptBase}
		r.inline = q.Key.Value == q.Job
	}
	r.run.attempt++
	r.run.expires = never
	c := acquired(now, q, token(now, r.row.token), r.run.attempt)
	c.History = r.run.history
	r.row = keyRow{
		state: idempotency.Acquired, token: c.Token, payload: q.Fingerprint[:], holder: r.id, owner: q.Owner, until: at(c.Until.UnixNano()),
	}
	return c, r.save(tx)
}

// finish lets the ledger entry of a run whose key another run completed end with the key. It would otherwise stay for ever.
func (r *records) finish(tx *sqlitefile.Tx) error {
	if r.inline || !r.run.exists || r.run.expires.Valid {
		return nil
	}
	r.run.expires = r.row.expires
	return r.saveRun(tx)
}

// token returns a token above last, the key's last one, and above those of records of the key that have expired since: it
// follows the clock.
func token(now time.Time, last int64) int64 { return max(last+1, now.UnixMicro()) }

func acquired(now time.Time, q idempotency.Request, token int64, attempt int) idempotency.Claim {
	return idempotency.Claim{
		Status: idempotency.Acquired, Token: token, Attempt: attempt, Until: time.Unix(0, now.Add(q.Lease).UnixNano()), Wait: q.Lease,
	}
}

func waiting(status idempotency.Status, until sql.NullInt64, now time.Time) idempotency.Claim {
	return idempotency.Claim{Status: status, Until: time.Unix(0, until.Int64), Wait: time.Duration(until.Int64 - now.UnixNano())}
}
