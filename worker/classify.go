package worker

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/schedule"
)

// verdict is the judgement on one delivery: what happened, and what follows for the job and for its destination.
type verdict struct {
	outcome Outcome
	err     error
	// reason is why it was deferred.
	reason string
	// cause is the dead letter's cause if the job ends here.
	cause dlq.Cause
	// after is the shortest delay asked for by the other side or computed by a guard; zero means none.
	after time.Duration
	// backoff replaces the kind's unless it is zero.
	backoff schedule.Backoff
	// hold asks to store a deferred job with its destination's held jobs instead of putting it back.
	hold bool
	// result is what the completed run of a duplicate left.
	result *idempotency.Result
	// lost says that the claim or lease is somebody else's: settle nothing.
	lost bool

	// breaker is what destination's breaker hears of a started attempt.
	breaker     breaker.Outcome
	destination string
	throttle    time.Duration
}

// classify is the one judge: it alone turns a handler's error into an outcome. cause is the cause of the handler's context, nil while that
// context was alive when the handler returned.
func classify(err, cause error) verdict {
	if err == nil {
		return verdict{outcome: OutcomeSucceeded, breaker: breaker.OutcomeSuccess}
	}
	return classifyError(err, cause)
}

func classifyError(err, cause error) verdict {
	var stated *Error
	var panicked *PanicError
	switch {
	case errors.As(err, &panicked):
		return verdict{outcome: OutcomeFailed, err: err, cause: dlq.CausePanic, breaker: breaker.OutcomeIgnored}
	case errors.Is(cause, ErrStopping):
		return verdict{outcome: OutcomeInterrupted, err: cause, breaker: breaker.OutcomeIgnored}
	case errors.Is(cause, ErrClaimLost), errors.Is(cause, ErrLeaseLost):
		return verdict{outcome: OutcomeInterrupted, err: cause, lost: true, breaker: breaker.OutcomeIgnored}
	case errors.As(err, &stated):
		return stated.verdict(err)
	case errors.Is(cause, ErrLeaseEnding):
		return verdict{outcome: OutcomeFailed, err: err, cause: dlq.CauseTimeout, breaker: breaker.OutcomeIgnored}
	case errors.Is(cause, ErrTimeout), errors.Is(cause, context.DeadlineExceeded):
		return verdict{outcome: OutcomeFailed, err: err, cause: dlq.CauseTimeout, breaker: breaker.OutcomeFailure}
	}
	return verdict{outcome: OutcomeFailed, err: err, cause: dlq.CauseExhausted, breaker: breaker.OutcomeFailure}
}

// verdict reads what the handler stated. whole is the error as returned, with everything wrapped around e.
func (e *Error) verdict(whole error) verdict {
	v := verdict{
		outcome:     e.Outcome,
		err:         whole,
		cause:       e.Cause,
		after:       e.After,
		backoff:     e.Backoff,
		breaker:     e.Breaker,
		destination: e.Destination,
		throttle:    e.Throttle,
	}
	switch e.Outcome {
	case OutcomeDeferred:
		v.reason, v.hold = ReasonSnoozed, e.Hold
		if e.Hold {
			v.reason = ReasonHeld
		}
		v.after = max(v.after, time.Second) // never a hot loop
	case OutcomeRejected:
		if v.cause == "" {
			v.cause = dlq.CauseRejected
		}
	default:
		v.outcome = OutcomeFailed
		if v.cause == "" {
			v.cause = dlq.CauseExhausted
		}
	}
	return v
}
