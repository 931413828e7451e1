package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

// How long a dead job at the head of its group stays hidden: a quarter of the time since it died, within these bounds. Each look is one
// delivery more, and brokers give up a message that was delivered very often.
const (
	minBlocked = time.Minute
	maxBlocked = 30 * time.Minute
)

// checkDead is the guard of groups that wait behind their dead. A job that died before stays where it is; one that was replayed runs here as the
// run that the replay began, in its place; one that was purged is over.
//
//nolint:contextcheck // a look at the dead letters has a context of its own, as settlements have
func (a *attempt) checkDead(stop context.Context) (verdict, bool) {
	if !a.mayHaveDied() {
		return verdict{}, false
	}
	e, err := a.deadLetter()
	switch {
	case errors.Is(err, dlq.ErrNotFound):
		return verdict{}, false
	case err != nil:
		return a.deadLettersUnavailable(err), true
	case e.State == dlq.StatePurged, e.State == dlq.StateReplayed:
		return purged(), true
	case e.State != dlq.StateDead:
		return verdict{}, false
	case !bytes.Equal(e.Message.Body, a.job.Payload):
		return verdict{}, false // another job of this id: the claim tells
	}
	v, done := a.claim(stop)
	switch {
	case !done:
		// Its ledger is open: the process that stored the entry died before it could close it, or the ledger has forgotten.
		return verdict{outcome: OutcomeRejected, cause: e.Cause, err: errors.New(e.Error)}, true
	case v.outcome == OutcomeDuplicate && v.result == nil:
		return blocked(e), true
	}
	return v, true
}

// recheckDead looks whether a delivery that ends dead without having run is one that died before: it is stored and told once.
func (a *attempt) recheckDead(v verdict) verdict {
	if v.outcome != OutcomeRejected || a.claimHandle.Token != 0 || !a.mayHaveDied() {
		return v
	}
	e, err := a.deadLetter()
	switch {
	case errors.Is(err, dlq.ErrNotFound):
		return v
	case err != nil:
		return a.deadLettersUnavailable(err)
	case e.State == dlq.StateDead:
		return blocked(e)
	case e.State == dlq.StateHeld:
		return v
	}
	return purged()
}

// mayHaveDied reports whether the message may be a dead job that blocks its group.
func (a *attempt) mayHaveDied() bool { return a.queue.blocks() && a.lease.DeliveryCount != 1 }

// deadLetter returns the entry of the run that this delivery is, following replays: the job goes on as the run that the last of them began.
func (a *attempt) deadLetter() (dlq.Entry, error) {
	for {
		job, run := a.entryKey()
		e, err := a.w.deadLetters.Get(a.w.settling.context(), dlq.EntryID(job, run))
		if err != nil || e.State != dlq.StateReplayed || a.job == nil || a.idConflict || !a.hasEnvelope() {
			return e, err
		}
		a.nextRun(e)
	}
}

// hasEnvelope reports whether the message says which job and run it is. The copy of one that does not is a job of its own, and runs as that.
func (a *attempt) hasEnvelope() bool {
	_, ok := a.lease.Headers[queue.HeaderEnvelope]
	return ok
}

// nextRun makes the job the run that the replay of e began: as old as that, and without a deadline that had passed by then.
func (a *attempt) nextRun(e dlq.Entry) {
	a.job.Run, a.attemptBase = e.Run+1, 0
	if a.job.NotBefore.Before(e.ChangedAt) {
		a.job.NotBefore = e.ChangedAt
	}
	if d := a.job.Deadline; !d.IsZero() && !e.ChangedAt.Before(d) {
		a.job.Deadline = time.Time{}
	}
}

func blocked(e dlq.Entry) verdict {
	wait := min(max(time.Since(e.StoredAt)/4, minBlocked), maxBlocked)
	return verdict{
		outcome: OutcomeDeferred, reason: ReasonBlocked, after: wait,
		err: fmt.Errorf("dead letter %s blocks its group: replay it or purge it", e.ID),
	}
}

func purged() verdict {
	return verdict{outcome: OutcomeDuplicate, err: errors.New("this dead letter was purged or replayed")}
}

func (a *attempt) deadLettersUnavailable(err error) verdict {
	return verdict{outcome: OutcomeDeferred, reason: ReasonStoreUnavailable, after: jitter(minStoreDelay), err: err}
}
