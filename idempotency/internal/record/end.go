package record

import (
	"cmp"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
)

// holds says that h is still the key's claim.
func (r *Record) holds(h idempotency.Handle) bool {
	return r.Row.State == idempotency.StatusAcquired && r.Row.Token == h.Token && r.Row.Holder == r.ID
}

// between says that h was the key's last claim, has failed or was abandoned, and that its run is not given up.
func (r *Record) between(h idempotency.Handle) bool {
	return r.Row.State == 0 && r.Row.Exists && r.Row.Token == h.Token && r.Row.Holder == r.ID && !r.Run.Closed
}

// Complete closes the claim with success. A repeated completion changes nothing.
func (r *Record) Complete(now time.Time, c idempotency.Completion) (Change, error) {
	if r.Row.State == idempotency.StatusCompleted && r.Row.Token == c.Token && r.Row.Holder == r.ID {
		return Nothing, nil
	}
	if !r.holds(c.Handle) && !r.between(c.Handle) {
		return Nothing, Lost(c.Handle)
	}
	r.Row.State, r.Row.Result = idempotency.StatusCompleted, c.Result.Capped()
	r.Row.Until, r.Row.Expires = time.Time{}, Expiry(now, c.Retention)
	r.Run.Expires = r.Row.Expires
	return All, nil
}

// Abandon gives the claim back with no attempt spent.
func (r *Record) Abandon(now time.Time, a idempotency.Abandonment) (Change, error) {
	if !r.holds(a.Handle) {
		return Nothing, Lost(a.Handle)
	}
	r.Row.State, r.Row.Until = 0, time.Time{}
	r.Run.Attempt = max(0, r.Run.Attempt-1)
	r.Run.NotBefore = now.Add(a.Delay)
	return All, nil
}

// Fail ends the claim after a failed attempt.
func (r *Record) Fail(now time.Time, f idempotency.Failure) (Change, error) {
	if !r.holds(f.Handle) {
		return Nothing, Lost(f.Handle)
	}
	r.Row.State, r.Row.Until = 0, time.Time{}
	r.Run.Exists = true
	r.Run.History = appendHistory(r.Run.History, f.Attempt)
	if !f.Final {
		r.Run.NotBefore = now.Add(f.Delay)
		return All, nil
	}
	r.Row.Payload, r.Row.Expires = nil, Expiry(now, f.Retention)
	r.Run.Closed, r.Run.Expires = true, r.Row.Expires
	return All, nil
}

// Expiry is when a record that ends now is no longer remembered.
func Expiry(now time.Time, retention time.Duration) time.Time {
	return now.Add(cmp.Or(retention, idempotency.DefaultRetention))
}

// Lost is the error of a write on a claim that is not held.
func Lost(h idempotency.Handle) error {
	return fmt.Errorf("job %q run %d: %w", h.Job, h.Run, idempotency.ErrClaimLost)
}

// Extend prolongs the claim until the given time.
func (r *Record) Extend(until time.Time, h idempotency.Handle) (Change, error) {
	if !r.holds(h) {
		return Nothing, Lost(h)
	}
	r.Row.Until = until
	return All, nil
}

// Ended says that h was the key's last claim, and that it has been abandoned or has failed: what a caller finds whose own write was stored
// and whose answer was lost.
func (r *Record) Ended(h idempotency.Handle) bool {
	return r.Row.State == 0 && r.Row.Exists && r.Row.Token == h.Token && r.Row.Holder == r.ID
}

// appendHistory returns history with a, capped, at its end, and at most [idempotency.MaxHistory] attempts.
func appendHistory(history []idempotency.Attempt, a idempotency.Attempt) []idempotency.Attempt {
	history = append(history, a.Capped())
	return history[max(0, len(history)-idempotency.MaxHistory):]
}
