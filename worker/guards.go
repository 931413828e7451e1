package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue"
)

// decode reads the envelope and payload.
func (a *attempt) decode(context.Context) (verdict, bool) {
	env, err := a.lease.Envelope()
	if errors.Is(err, queue.ErrNoEnvelope) && a.queue.cfg.DefaultKind != "" {
		env, err = a.foreign(), nil
	}
	if err != nil {
		return undecodable(err)
	}
	a.job = &Job{
		ID: env.ID, Kind: env.Kind, Version: env.Version, Payload: a.lease.Body, Key: env.Key, Destination: env.Destination,
		Queue: a.lease.Queue, Headers: env.Headers, EnqueuedAt: env.EnqueuedAt, NotBefore: env.NotBefore, Deadline: env.Deadline,
		Run: env.Run, DeliveryCount: a.lease.DeliveryCount,
	}
	a.kind = a.w.kinds.find(env.Kind, env.Version)
	if limit := a.queue.limits.MaxBody; limit > 0 && len(a.lease.Body) > limit {
		return a.tooLarge(limit), true
	}
	if a.kind == nil {
		return a.unknownKind(env)
	}
	a.job.Kind, a.job.MaxAttempts = a.kind.name, a.kind.config.MaxAttempts
	if err := a.decodePayload(); err != nil { //nolint:contextcheck // settlements have a context of their own
		return undecodable(err)
	}
	if a.job.Key == "" {
		a.job.Key = a.job.ID
	}
	if a.job.Destination == "" {
		a.job.Destination = a.kind.config.Destination
	}
	a.attemptBase = env.AttemptBase
	return verdict{}, false
}

// decodePayload runs code of the program (unmarshalers, Key, Destination) and keeps its panics.
func (a *attempt) decodePayload() (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			err = fmt.Errorf("reading the payload: %w", &PanicError{Value: p, Stack: debug.Stack()})
			return
		}
		// runtime.Goexit ends this goroutine, come what may: the job has to be settled here, and work carries on in another one.
		v, _ := undecodable(fmt.Errorf("reading the payload: %w", &PanicError{}))
		a.settle(v)
	}()
	err = a.kind.decode(a.job)
	returned = true
	return err
}

// foreign makes an envelope for a message that was not enqueued by a Caisson client. The broker's id names the job: it is the same on
// each redelivery.
func (a *attempt) foreign() queue.Envelope {
	enqueued := a.lease.EnqueuedAt
	if enqueued.IsZero() {
		enqueued = a.received
	}
	return queue.Envelope{
		ID: a.lease.Queue + ":" + a.lease.ID, Kind: a.queue.cfg.DefaultKind, EnqueuedAt: enqueued, Headers: a.lease.Headers,
	}
}

func undecodable(err error) (verdict, bool) {
	return verdict{outcome: OutcomeRejected, err: err, cause: dlq.CauseUndecodable}, true
}

// tooLarge sets a message aside that nobody could put back: it came from a producer with another limit.
func (a *attempt) tooLarge(limit int) verdict {
	err := fmt.Errorf("message of %d bytes is larger than the %d that broker and configuration allow: store the payload elsewhere and enqueue a reference to it",
		len(a.lease.Body), limit)
	return verdict{outcome: OutcomeRejected, err: err, cause: dlq.CauseTooLarge}
}

// unknownKind waits for a rolling deploy to bring the handler, then gives up. A few looks are enough.
func (a *attempt) unknownKind(env queue.Envelope) (verdict, bool) {
	err := fmt.Errorf("no handler for kind %q, version %d: register it or send it to another queue", env.Kind, env.Version)
	since := a.job.dueAt()
	wait := a.w.cfg.UnknownKindAfter
	if a.received.Sub(since) >= wait {
		return verdict{outcome: OutcomeRejected, err: err, cause: dlq.CauseUnknownKind}, true
	}
	return verdict{outcome: OutcomeDeferred, err: err, reason: ReasonUnknownKind, after: max(wait/5, time.Second)}, true
}

// checkDue stops jobs that are too early or too late.
func (a *attempt) checkDue(stop context.Context) (verdict, bool) {
	now := time.Now()
	if wait := a.job.NotBefore.Sub(now); wait > 0 {
		return verdict{outcome: OutcomeDeferred, reason: ReasonNotDue, after: wait, err: errors.New("not due yet")}, true
	}
	if d := a.job.Deadline; !d.IsZero() && !now.Before(d) {
		return a.expire(stop, fmt.Errorf("deadline %s passed before the job could start", d.Format(time.RFC3339)))
	}
	if age, limit := now.Sub(a.job.dueAt()), a.kind.config.MaxAge; age > limit {
		return a.expire(stop, fmt.Errorf("job waited %s, longer than its kind's max age %s", age.Round(time.Second), limit))
	}
	return verdict{}, false
}

// expire gives up a job that came too late. Its ledger is asked first, also where the broker delivers the message for the first time, since it may
// be a copy or have been held: the job may be done, and else its run has to be closed and its history told.
func (a *attempt) expire(stop context.Context, err error) (verdict, bool) {
	if v, done := a.claim(stop); done {
		return v, true
	}
	a.job.Attempt-- // the one that was charged is not going to run
	return verdict{outcome: OutcomeRejected, cause: dlq.CauseExpired, err: err}, true
}

// peek asks destination and pool without taking anything, so that a deferral costs no store write and burns no token.
func (a *attempt) peek(context.Context) (verdict, bool) {
	now := time.Now()
	if a.job.Destination != "" {
		if ok := a.w.destinations.Peek(now, pools.Request{Destination: a.job.Destination, Class: a.queue.class()}); !ok.OK() {
			return a.refused(ok, now), true
		}
	}
	if p := a.kind.pool; p != nil && (!p.Available(a.queue.class()) || p.outranks(now, a.queue.class())) {
		return a.poolFull(), true
	}
	return verdict{}, false
}

// acquire takes a place in the kind's bulkhead, in its wait queue while the heartbeat keeps the lease. A place is taken before the claim, so
// that a job which waits for its turn holds no claim and has written nothing.
func (a *attempt) acquire(stop context.Context) (verdict, bool) {
	if a.kind.pool == nil {
		return verdict{}, false
	}
	if err := a.kind.pool.Acquire(stop, a.queue.class()); err != nil {
		if stop.Err() != nil {
			return verdict{outcome: OutcomeInterrupted, err: ErrStopping}, true
		}
		return a.poolFull(), true
	}
	a.acquired = true
	a.kind.pool.acquired(time.Now())
	if a.keepalive.leaseLost() || !time.Now().Before(a.lease.Deadline()) {
		return verdict{outcome: OutcomeInterrupted, err: ErrLeaseLost, lost: true}, true
	}
	return a.checkDue(stop) // it may have waited for long
}

func (a *attempt) poolFull() verdict {
	return verdict{
		outcome: OutcomeDeferred, reason: ReasonPoolFull, after: a.kind.pool.deferral(time.Now(), a.queue.class()),
		err: fmt.Errorf("pool of kind %q is full", a.kind.name),
	}
}

// admit takes the destination's permit, rate token, retry budget and breaker permit, all or nothing.
func (a *attempt) admit(context.Context) (verdict, bool) {
	if a.job.Destination == "" {
		return verdict{}, false
	}
	now := time.Now()
	permit, ok := a.w.destinations.Admit(now, pools.Request{
		Destination: a.job.Destination, Class: a.queue.class(), Retry: a.job.Attempt > 1, Places: a.w.places(a.kind),
	})
	if !ok.OK() {
		return a.refused(ok, now), true
	}
	a.permit = permit
	select {
	case a.w.calling <- struct{}{}:
	default: // it has been told
	}
	return verdict{}, false
}

// jitter spreads d over [d, 1.2 d), never below d.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*0.2*float64(d))
}
