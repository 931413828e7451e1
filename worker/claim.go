package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
)

// claim charges the attempt: in the ledger for keyed kinds, else by the broker's own count.
//
//nolint:contextcheck // a claim that is under way when the stop comes has to be known, so that it can be given back
func (a *attempt) claim(context.Context) (verdict, bool) {
	if !a.kind.keyed {
		a.job.Attempt = a.attemptBase + max(a.lease.Attempts, 1)
		if a.lease.Attempts == 0 {
			a.job.Attempt = a.attemptBase + max(a.lease.DeliveryCount, 1)
		}
		return a.checkAttempt()
	}
	if err := a.w.storeHealth.err(); err != nil {
		return a.storeUnavailable(err), true
	}
	asked := time.Now()
	c := a.w.cfg.Store.Claim(a.w.settling.context(), []idempotency.Request{{
		Key: a.key(), Job: a.job.ID, Run: a.job.Run, AttemptBase: a.attemptBase,
		Fingerprint: idempotency.FingerprintOf(a.job.Payload), Owner: a.w.cfg.Owner, Lease: a.w.cfg.Lease,
	}})[0]
	if c.Err != nil {
		a.w.storeHealth.failed(c.Err)
		return a.storeUnavailable(c.Err), true
	}
	switch c.Status {
	case idempotency.StatusAcquired:
		a.claimHandle = idempotency.Handle{Key: a.key(), Job: a.job.ID, Run: a.job.Run, Token: c.Token}
		a.history = c.History
		a.job.Attempt, a.job.Token = c.Attempt, c.Token
		a.keepalive.setClaim(a.claimHandle, asked.Add(a.w.cfg.Heartbeat))
		return a.checkAttempt()
	case idempotency.StatusCompleted:
		return verdict{outcome: OutcomeDuplicate, result: &c.Result}, true
	case idempotency.StatusClosed:
		return a.givenUp(), true
	case idempotency.StatusConflict:
		err := fmt.Errorf("key %q belongs to another payload: enqueue under another key, or the same bytes", a.job.Key)
		a.idConflict = a.job.Key == a.job.ID
		return verdict{outcome: OutcomeRejected, cause: dlq.CauseMismatch, err: err}, true
	case idempotency.StatusNotDue:
		return verdict{outcome: OutcomeDeferred, reason: ReasonNotDue, after: c.Wait, err: errors.New("not due yet")}, true
	}
	// The owner may finish at any moment, or may have died: look again at the latest when its claim runs out.
	wait := min(c.Wait, a.w.cfg.Lease) + 50*time.Millisecond
	return verdict{outcome: OutcomeDeferred, reason: ReasonClaimBusy, after: jitter(wait), err: errors.New("key is claimed by another delivery")}, true
}

// givenUp is the verdict for a delivery of a run that is a dead letter already, or was replayed: a late copy is acked. Another payload under the
// same id is no copy and must not vanish.
func (a *attempt) givenUp() verdict {
	givenUp := verdict{outcome: OutcomeDuplicate, err: errors.New("this run was given up before")}
	if a.w.deadLetters == nil {
		return givenUp // nobody remembers its payload
	}
	id := dlq.EntryID(a.job.ID, a.job.Run)
	e, err := a.w.deadLetters.Get(a.w.settling.context(), id)
	switch {
	case unavailable(err):
		return verdict{outcome: OutcomeDeferred, reason: ReasonStoreUnavailable, after: jitter(minStoreDelay), err: err}
	case err == nil && e.State != dlq.StatePurged && !bytes.Equal(e.Message.Body, a.job.Payload):
		a.idConflict = true
		return verdict{outcome: OutcomeRejected, cause: dlq.CauseMismatch, err: fmt.Errorf("id %q belongs to another payload, which is dead letter %s", a.job.ID, id)}
	}
	return givenUp
}

func (a *attempt) storeUnavailable(err error) verdict {
	return verdict{outcome: OutcomeDeferred, reason: ReasonStoreUnavailable, after: a.w.storeHealth.delay(), err: err}
}

// checkAttempt ends jobs whose attempts were all spent without the last one reporting back, or whose limit was lowered since it did.
func (a *attempt) checkAttempt() (verdict, bool) {
	if a.job.Attempt <= a.job.MaxAttempts {
		return verdict{}, false
	}
	if n := len(a.history); n > 0 && a.history[n-1].Number == a.job.Attempt-1 {
		last := a.history[n-1]
		a.job.Attempt = last.Number
		return verdict{outcome: OutcomeRejected, cause: dlq.CauseExhausted, err: errors.New(last.Error)}, true
	}
	a.job.Attempt = a.job.MaxAttempts
	err := fmt.Errorf("all %d attempts are spent and the last one never reported: its worker died or lost the lease", a.job.MaxAttempts)
	return verdict{outcome: OutcomeRejected, cause: dlq.CauseWorkerLost, err: err}, true
}

func (a *attempt) key() idempotency.Key {
	return idempotency.Key{Scope: a.kind.name, Value: a.job.Key}
}
