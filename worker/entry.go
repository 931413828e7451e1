package worker

import (
	"maps"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue"
)

// entry makes the dead letter of a job that leaves the queue unfinished. A message that could not be decoded is kept under the broker's id.
func (a *attempt) entry(v verdict, p plan) dlq.Entry {
	e := dlq.Entry{
		State: p.state, Queue: a.lease.Queue, Cause: p.cause, Message: a.lease.Message, Group: a.lease.Group,
		EnqueuedAt: a.lease.EnqueuedAt,
	}
	if j := a.job; j != nil {
		e.Kind, e.Key, e.Destination, e.EnqueuedAt, e.AttemptCount = j.Kind, j.Key, j.Destination, j.EnqueuedAt, j.Attempt
	}
	e.Job, e.Run = a.entryKey()
	if v.err != nil {
		e.Error = v.err.Error() // the store cuts it
	}
	for _, past := range a.history {
		e.Attempts = append(e.Attempts, dlq.FailedAttempt(past))
	}
	if !a.started.IsZero() && !p.uncharged { // a handler that asks to hold its job has not tried it
		e.Attempts = append(e.Attempts, dlq.FailedAttempt(a.ledgerAttempt(v)))
	}
	if p.state == dlq.StateHeld {
		e.Destination = pools.NormalizeDestination(e.Destination) // held jobs are released by breaker
		e.AttemptCount = len(a.history)
		a.carryAttempts(&e)
		return e
	}
	e.FirstFailedAt, e.LastFailedAt = a.received, time.Now()
	if len(e.Attempts) > 0 {
		e.FirstFailedAt, e.LastFailedAt = e.Attempts[0].Ended, e.Attempts[len(e.Attempts)-1].Ended
	}
	return e
}

// entryKey names the dead letter that this delivery would be.
func (a *attempt) entryKey() (job string, run int) {
	switch {
	case a.job == nil:
		return a.lease.Queue + ":" + a.lease.ID, 0
	case a.idConflict: // its place is that of the job that came first
		return a.lease.Queue + ":" + a.lease.ID, a.job.Run
	}
	return a.job.ID, a.job.Run
}

// carryAttempts writes the attempts that an unkeyed job has spent into its envelope: the message that it is released as starts the broker's
// own count anew. A keyed job's ledger remembers.
func (a *attempt) carryAttempts(e *dlq.Entry) {
	spent := a.attemptBase + max(a.lease.Attempts-1, 0)
	if a.kind.keyed || spent == 0 {
		return
	}
	e.AttemptCount = spent
	env, err := a.lease.Envelope()
	if err != nil {
		return // a foreign message has no envelope to carry a number
	}
	env.AttemptBase = spent
	m, err := queue.NewMessage(env, a.lease.Body)
	if err != nil {
		return
	}
	e.Message.Headers = maps.Clone(e.Message.Headers)
	e.Message.Headers[queue.HeaderEnvelope] = m.Headers[queue.HeaderEnvelope]
}

// ledgerAttempt is this attempt as the ledger and the dead letter remember it.
func (a *attempt) ledgerAttempt(v verdict) idempotency.Attempt {
	r := idempotency.Attempt{Number: a.job.Attempt, Started: a.received, Ended: time.Now()}
	if !a.started.IsZero() {
		r.Started, r.Ended = a.started, a.started.Add(a.handled)
	}
	if v.err != nil {
		r.Error = v.err.Error() // the store cuts it
	}
	return r
}
