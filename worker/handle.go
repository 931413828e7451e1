package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
)

// handle runs the handler in a goroutine of its own, so that one which ignores its context cannot keep the job: some time after its context
// has ended, the attempt goes on without it.
func (a *attempt) handle() verdict {
	ctx, cancel := a.context()
	defer cancel(nil)
	a.started = time.Now()
	a.beat.start(cancel)
	a.w.observe(&Started{Job: a.job, Kind: a.kind.name})

	h := a.w.crew.take()
	h.calls <- handlerCall{ctx: ctx, handler: a.kind.handler, job: a.job}
	var err error
	select {
	case err = <-h.done:
		a.w.crew.put(h)
	case <-ctx.Done():
		err = a.await(ctx, h)
	}
	a.handled = time.Since(a.started)
	a.beat.finish()
	var cause error
	if err != nil {
		cause = context.Cause(ctx)
	}
	cancel(nil) // whoever still waits for a transaction gets none
	v := a.endTx(err, cause)
	v.hold = v.hold && a.mayBeHeld()
	if v.hold {
		a.w.hold.asked(pools.NormalizeDestination(a.job.Destination), time.Now())
	}
	return v
}

// judge is classify for an error that the program made: one that panics when it is looked at, such as a nil pointer in an error, fails the
// attempt as the handler's own panic would.
func judge(err, cause error) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = classify(&PanicError{Value: p, Stack: debug.Stack()}, cause)
		}
	}()
	if err != nil {
		_ = err.Error() // the ledger and the dead letter are going to read it
	}
	return classify(err, cause)
}

// await gives a handler whose context has ended some time to return: until the stop is over, else the kind's grace.
func (a *attempt) await(ctx context.Context, h *handlerLoop) error {
	cause := context.Cause(ctx)
	patience := time.NewTimer(a.kind.config.TimeoutGrace)
	defer patience.Stop()
	giveUp := patience.C
	if errors.Is(cause, ErrStopping) {
		giveUp = nil // hardStop comes
	}
	select {
	case err := <-h.done:
		a.w.crew.put(h)
		return err
	case <-giveUp:
	case <-a.w.hardStop:
	}
	a.abandon(h) //nolint:contextcheck // the handler's context is over
	if errors.Is(cause, ErrTimeout) || errors.Is(cause, ErrLeaseEnding) {
		return fmt.Errorf("%w: the handler ignored its context for %s beyond its %s", cause, a.kind.config.TimeoutGrace, a.limit)
	}
	return cause
}

// context is the handler's: bounded by the timeout and the job's deadline, cancelled with a cause, and carrying the job.
func (a *attempt) context() (context.Context, context.CancelCauseFunc) {
	outer, cancel := context.WithCancelCause(a.w.work)
	a.limit = a.kind.limit()
	if own := a.permit.Timeout(); own > 0 {
		a.limit = min(a.limit, own)
	}
	end := time.Now().Add(a.limit)
	if d := a.job.Deadline; !d.IsZero() && d.Before(end) {
		end = d
	}
	why := ErrTimeout
	if last := a.lastMoment(); !last.IsZero() && last.Before(end) {
		end, why = last, ErrLeaseEnding
	}
	inner, stopTimer := context.WithDeadlineCause(outer, end, why)
	return &jobContext{Context: inner, attempt: a, job: a.job, logger: a.w.cfg.Logger}, func(cause error) {
		cancel(cause)
		stopTimer()
	}
}

// lastMoment is when an unkeyed handler has to end, so that it has returned and is settled when the broker takes the message back and
// another worker starts the job. Zero if extensions keep the lease for ever, and for keyed jobs: their redelivered copy waits for the claim.
func (a *attempt) lastMoment() time.Time {
	if a.kind.keyed || a.lease.Ceiling.IsZero() {
		return time.Time{}
	}
	left := time.Until(a.lease.Ceiling)
	return a.lease.Ceiling.Add(-min(a.kind.config.TimeoutGrace+settleTime, left/2))
}

// settleTime is what a settlement may take.
const settleTime = time.Second

// abandon goes on without a handler that does not return. It keeps its slot and its place in the bulkhead, so that such handlers cannot pile
// up. Should it succeed after all before another attempt has begun, that completes the key, unless it wanted a transaction: that one was rolled
// back.
func (a *attempt) abandon(h *handlerLoop) {
	job, kind := a.job, a.kind.name
	a.abandoned = true
	a.w.stuck.add(job)
	a.w.observe(&Abandoned{Job: job, Kind: kind})
	a.w.cfg.Logger.Error("handler ignores its cancelled context: abandoned, its slot stays taken", "job", job.ID, "kind", kind, "attempt", job.Attempt)
	a.w.late.Go(func() {
		err := <-h.done
		a.w.crew.put(h)
		if err == nil && a.held.Token != 0 && !a.tx.wanted() {
			a.completeLate()
		}
		if a.seat {
			a.kind.pool.Release()
		}
		a.queue.slots.put(1)
		a.w.stuck.remove(job)
		a.w.observe(&Abandoned{Job: job, Kind: kind, Returned: true})
	})
}

// completeLate records the success of an abandoned handler. It fails, rightly, if another attempt has begun or the run was closed.
func (a *attempt) completeLate() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.w.settling.parent), a.w.cfg.Lease)
	defer cancel()
	if err := a.w.cfg.Store.Complete(ctx, []idempotency.Completion{a.completion()})[0]; err != nil {
		a.w.cfg.Logger.Warn("abandoned handler succeeded too late", "job", a.job.ID, "kind", a.kind.name, "error", err)
	}
}
