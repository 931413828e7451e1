package record

import (
	"time"

	"github.com/caisson-go/caisson/idempotency"
)

// Claim answers q, and gives it the key if nothing speaks against it.
func (r *Record) Claim(now time.Time, q idempotency.Request) (idempotency.Claim, Change) {
	conflict := r.Row.Payload != nil && idempotency.Fingerprint(r.Row.Payload) != q.Fingerprint
	switch {
	case r.Row.State == idempotency.StatusCompleted && !conflict:
		return idempotency.Claim{Status: idempotency.StatusCompleted, Result: r.Row.Result}, r.finish()
	case r.Run.Closed:
		return idempotency.Claim{Status: idempotency.StatusClosed}, Nothing
	case conflict:
		return idempotency.Claim{Status: idempotency.StatusConflict}, Nothing
	case r.Row.State == idempotency.StatusAcquired && r.Row.Until.After(now):
		return waiting(idempotency.StatusBusy, r.Row.Until, now), Nothing
	case r.Run.NotBefore.After(now):
		return waiting(idempotency.StatusNotDue, r.Run.NotBefore, now), Nothing
	}
	return r.acquire(now, q), All
}

// acquire gives the key to q and charges its run.
func (r *Record) acquire(now time.Time, q idempotency.Request) idempotency.Claim {
	if !r.Run.Exists {
		r.Run = Ledger{Exists: true, Attempt: q.AttemptBase}
		r.Inline = q.Key.Value == q.Job
	}
	r.Run.Attempt++
	r.Run.Expires = time.Time{}
	c := Acquired(now, q, Token(now, r.Row.Token), r.Run.Attempt)
	c.History = r.Run.History
	r.Row = Row{
		Exists: true, State: idempotency.StatusAcquired, Token: c.Token, Payload: q.Fingerprint[:], Holder: r.ID, Owner: q.Owner, Until: c.Until,
	}
	return c
}

// finish lets the ledger entry of a run whose key another run completed end with the key. It would otherwise stay for ever.
func (r *Record) finish() Change {
	if r.Inline || !r.Run.Exists || !r.Run.Expires.IsZero() {
		return Nothing
	}
	r.Run.Expires = r.Row.Expires
	return RunOnly
}

// Token returns a token above last, the key's last one, and above those of records of the key that have expired since: it follows the
// clock.
func Token(now time.Time, last int64) int64 { return max(last+1, now.UnixMicro()) }

// Acquired is the answer to a request that got its key.
func Acquired(now time.Time, q idempotency.Request, token int64, attempt int) idempotency.Claim {
	return idempotency.Claim{
		Status: idempotency.StatusAcquired, Token: token, Attempt: attempt, Until: time.Unix(0, now.Add(q.Lease).UnixNano()), Wait: q.Lease,
	}
}

func waiting(status idempotency.Status, until, now time.Time) idempotency.Claim {
	return idempotency.Claim{Status: status, Until: until, Wait: until.Sub(now)}
}
