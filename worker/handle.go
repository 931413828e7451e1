package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
)

// handle runs the handler on this goroutine, then ends the attempt. Should the handler ignore the end of its context, giveUp ends the attempt
// from another goroutine, and this one only clears up when the handler has returned at last.
func (a *attempt) handle() {
	end := a.context()
	a.started = time.Now()
	a.running.start(&a.ctx, a.slot.cancel, giveUpAfter(end.Sub(a.started), a.kind.config.TimeoutGrace), a.giveUp)
	if a.w.stopIsHard() { // and has looked at those that ran
		a.running.expire()
	}

	err := error(&PanicError{}) // of a handler that ends its goroutine with runtime.Goexit
	defer func() {
		if a.running.returned() {
			a.finish(a.verdict(err))
		} else {
			a.returnedLate(err)
		}
	}()
	a.w.observe(&Started{Job: a.job, Kind: a.kind.name})
	err = a.call()
}

// giveUpAfter is how long a handler has to return whose context ends after left: all of its grace, also where the job's deadline passed while the
// claim was taken.
func giveUpAfter(left, grace time.Duration) time.Duration {
	return min(max(left, 0), math.MaxInt64-grace) + grace
}

// call calls the handler and makes an error of a panic.
func (a *attempt) call() (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	err = a.kind.handler(&a.ctx, a.job)
	returned = true
	return err
}

// verdict is what becomes of a job whose handler is over with err.
func (a *attempt) verdict(err error) verdict {
	a.handled = time.Since(a.started)
	var cause error
	if err != nil {
		cause = context.Cause(&a.ctx)
	}
	a.ctx.end() // whoever still waits for a transaction gets none
	v := a.endTx(err, cause)
	v.hold = v.hold && a.mayBeHeld()
	if v.hold {
		a.w.hold.recordRequest(pools.NormalizeDestination(a.job.Destination), time.Now())
	}
	return v
}

// classifySafely is classify for an error that the program made: one that panics when it is looked at, such as a nil pointer in an error, fails the
// attempt as the handler's own panic would.
func classifySafely(err, cause error) (v verdict) {
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

// context makes the handler's: bounded by the timeout and the job's deadline, cancelled with a cause, and carrying the job. It returns when the
// context ends at the latest.
func (a *attempt) context() time.Time {
	a.timeout = a.kind.currentTimeout()
	if own := a.permit.Timeout(); own > 0 {
		a.timeout = min(a.timeout, own)
	}
	end := time.Now().Add(a.timeout)
	if d := a.job.Deadline; !d.IsZero() && d.Before(end) {
		end = d
	}
	why := ErrTimeout
	if last := a.mustReturnBy(); !last.IsZero() && last.Before(end) {
		end, why = last, ErrLeaseEnding
	}
	ctx, cancel := context.WithDeadlineCause(a.slot.context(a.w.work), end, why)
	a.ctx = jobContext{Context: ctx, end: cancel, attempt: a, job: a.job, logger: a.w.cfg.Logger}
	return end
}

// mustReturnBy is when an unkeyed handler has to end, so that it has returned and is settled when the broker takes the message back and
// another worker starts the job. Zero if extensions keep the lease for ever, and for keyed jobs: their redelivered copy waits for the claim.
func (a *attempt) mustReturnBy() time.Time {
	if a.kind.keyed || a.lease.Ceiling.IsZero() {
		return time.Time{}
	}
	left := time.Until(a.lease.Ceiling)
	return a.lease.Ceiling.Add(-min(a.kind.config.TimeoutGrace+settleTime, left/2))
}

// settleTime is what a settlement may take.
const settleTime = time.Second

// giveUp goes on without a handler that has ignored the end of its context for the kind's grace, or to the end of the stop. It keeps its slot
// and its place in the bulkhead, so that such handlers cannot pile up.
func (a *attempt) giveUp() {
	<-a.ctx.Done()
	err := context.Cause(&a.ctx)
	if errors.Is(err, ErrStopping) && !a.w.stopIsHard() {
		return // it has time until then
	}
	job, kind := a.job, a.kind.name
	if !a.running.abandon(func() { a.abandoned = true; a.w.abandoned.add(job) }) {
		return // it has returned after all
	}
	defer a.w.heartbeat.remove(a)
	a.w.observe(&Abandoned{Job: job, Kind: kind})
	a.w.cfg.Logger.Error("handler ignores its cancelled context: abandoned, its slot stays taken", "job", job.ID, "kind", kind, "attempt", job.Attempt)
	if errors.Is(err, ErrTimeout) || errors.Is(err, ErrLeaseEnding) {
		err = fmt.Errorf("%w: the handler ignored its context for %s beyond its %s", err, a.kind.config.TimeoutGrace, a.timeout)
	}
	a.finish(a.verdict(err))
}

// returnedLate clears up behind an abandoned handler that has returned. Should it have succeeded before another attempt has begun, that completes the
// key, unless it wanted a transaction: that one was rolled back.
func (a *attempt) returnedLate(err error) {
	if err == nil && a.claimHandle.Token != 0 && !a.tx.wanted() {
		a.completeLate()
	}
	if a.acquired {
		a.kind.pool.Release()
	}
	a.w.abandoned.remove(a.job)
	a.w.observe(&Abandoned{Job: a.job, Kind: a.kind.name, Returned: true})
}

// completeLate records the success of an abandoned handler. It fails, rightly, if another attempt has begun or the run was closed.
func (a *attempt) completeLate() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.w.settling.parent), a.w.cfg.Lease)
	defer cancel()
	if err := a.w.cfg.Store.Complete(ctx, []idempotency.Completion{a.completion()})[0]; err != nil {
		a.w.cfg.Logger.Warn("abandoned handler succeeded too late", "job", a.job.ID, "kind", a.kind.name, "error", err)
	}
}
