package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/schedule"
)

// Error is an error that says what is to become of the attempt. Handlers usually make one with [RetryAfter], [Snooze], [Cancel] or
// [Unavailable]; a handler that knows more, such as a webhook sender, fills it in itself. A plain error is the same as
// Error{Outcome: Failed, Err: err} for a sick destination.
type Error struct {
	// Outcome is Failed, Rejected or Deferred.
	Outcome Outcome
	// Err is the reason. It is logged and kept with the dead letter. Nil is allowed, but leaves no explanation.
	Err error
	// After is the shortest time until the next try. Zero leaves it to the kind's backoff. Jitter never shortens it.
	After time.Duration
	// Backoff replaces the kind's for the delay after this attempt. Zero leaves the kind's.
	Backoff schedule.Backoff
	// Cause is the dead letter's cause if this outcome ends the job. Empty means the usual one of the outcome.
	Cause dlq.Cause
	// Destination is whose breaker hears of it; empty means the job's own.
	Destination string
	// Breaker is what the destination's breaker hears: breaker.OutcomeIgnored unless the destination itself was sick.
	Breaker breaker.Outcome
	// Hold asks to keep a Deferred job with its destination's held jobs, because an operator paused the destination: it comes back at the ramp
	// once calls get through again. Jobs of FIFO queues, of no destination, and of workers without a store of dead letters are put back after After.
	Hold bool
	// Throttle closes the whole destination for this long, for all jobs (429 with Retry-After). Zero leaves it open.
	Throttle time.Duration
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Outcome.String() + " without a reason"
	}
	return e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// RetryAfter fails the attempt and asks for the next one no sooner than d, because the other side said so. The destination's breaker
// ignores it: being asked to slow down is not an outage. A nil err stands for "asked to retry later".
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("asked to retry later")
	}
	return &Error{Outcome: OutcomeFailed, Err: err, After: d, Breaker: breaker.OutcomeIgnored}
}

// Snooze puts the job back for d with no attempt spent: it is not time yet. The kind's max age bounds how often.
func Snooze(d time.Duration, reason string) error {
	return &Error{Outcome: OutcomeDeferred, Err: errors.New("snoozed: " + reason), After: d, Breaker: breaker.OutcomeIgnored}
}

// Cancel rejects the job: it can never succeed and goes to the dead letters at once. A nil err stands for "cancelled".
func Cancel(err error) error {
	if err == nil {
		err = errors.New("cancelled by its handler")
	}
	return &Error{Outcome: OutcomeRejected, Err: err, Breaker: breaker.OutcomeIgnored}
}

// Unavailable fails the attempt and tells the breaker of destination that it is sick. Use it for calls to something other than the
// job's own destination. The attempt is spent like any call that was made.
func Unavailable(destination string, err error) error {
	if err == nil {
		err = errors.New("unavailable")
	}
	return &Error{Outcome: OutcomeFailed, Err: fmt.Errorf("%s: %w", destination, err), Destination: destination, Breaker: breaker.OutcomeFailure}
}

// PanicError is the error of an attempt whose handler panicked or ended its goroutine.
type PanicError struct {
	// Value is what was passed to panic; nil after runtime.Goexit.
	Value any
	// Stack is the handler's stack at the panic; empty after runtime.Goexit.
	Stack []byte
}

func (e *PanicError) Error() string {
	if e.Value == nil && len(e.Stack) == 0 {
		return "handler ended its goroutine (runtime.Goexit)"
	}
	return fmt.Sprintf("handler panicked: %v\n%s", e.Value, e.Stack)
}

// Unwrap returns the panic's value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Reasons for which a handler's context is cancelled, apart from its timeout. Read them with context.Cause.
var (
	// ErrStopping means that the worker is stopping and its grace is over.
	ErrStopping = errors.New("worker is stopping")
	// ErrClaimLost is [idempotency.ErrClaimLost]: another worker took over the job's key.
	ErrClaimLost = idempotency.ErrClaimLost
	// ErrLeaseLost is [queue.ErrLeaseLost]: the broker took the message of an unkeyed job back.
	ErrLeaseLost = queue.ErrLeaseLost
	// ErrLeaseEnding means that the broker lets nobody keep a message for longer, and is about to take the message of an unkeyed job back.
	ErrLeaseEnding = errors.New("lease is ending: the broker lets nobody keep a message for longer")
	// ErrTimeout means that the attempt used up the kind's timeout.
	ErrTimeout = errors.New("attempt timed out")
)
