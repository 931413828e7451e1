package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools/breaker"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	plain := errors.New("boom")
	gone := &Error{Outcome: OutcomeRejected, Err: plain, Cause: dlq.CauseEndpointGone, Breaker: breaker.OutcomeIgnored}
	for _, c := range []struct {
		name       string
		err, cause error
		want       Outcome
		wantCause  dlq.Cause
		breaker    breaker.Outcome
		after      time.Duration
		lost       bool
	}{
		{name: "nil succeeds", want: OutcomeSucceeded, breaker: breaker.OutcomeSuccess},
		{name: "late success is a success", cause: ErrTimeout, want: OutcomeSucceeded, breaker: breaker.OutcomeSuccess},
		{name: "success during a stop is a success", cause: ErrStopping, want: OutcomeSucceeded, breaker: breaker.OutcomeSuccess},
		{name: "success after a lost claim is left to the settler", cause: ErrClaimLost, want: OutcomeSucceeded, breaker: breaker.OutcomeSuccess},
		{name: "plain error fails and feeds the breaker", err: plain, want: OutcomeFailed, wantCause: dlq.CauseExhausted, breaker: breaker.OutcomeFailure},
		{name: "wrapped plain error", err: fmt.Errorf("a: %w", plain), want: OutcomeFailed, wantCause: dlq.CauseExhausted, breaker: breaker.OutcomeFailure},
		{name: "timeout", err: context.DeadlineExceeded, cause: ErrTimeout, want: OutcomeFailed, wantCause: dlq.CauseTimeout, breaker: breaker.OutcomeFailure},
		{name: "stop", err: context.Canceled, cause: ErrStopping, want: OutcomeInterrupted, breaker: breaker.OutcomeIgnored},
		{name: "claim lost", err: context.Canceled, cause: ErrClaimLost, want: OutcomeInterrupted, breaker: breaker.OutcomeIgnored, lost: true},
		{name: "lease lost", err: context.Canceled, cause: ErrLeaseLost, want: OutcomeInterrupted, breaker: breaker.OutcomeIgnored, lost: true},
		{name: "panic", err: &PanicError{Value: "x"}, want: OutcomeFailed, wantCause: dlq.CausePanic, breaker: breaker.OutcomeIgnored},
		{name: "panic during a stop still counts", err: &PanicError{Value: "x"}, cause: ErrStopping, want: OutcomeFailed, wantCause: dlq.CausePanic, breaker: breaker.OutcomeIgnored},
		{name: "cancel", err: Cancel(plain), want: OutcomeRejected, wantCause: dlq.CauseRejected, breaker: breaker.OutcomeIgnored},
		{name: "wrapped cancel", err: fmt.Errorf("a: %w", Cancel(plain)), want: OutcomeRejected, wantCause: dlq.CauseRejected, breaker: breaker.OutcomeIgnored},
		{name: "retry after", err: RetryAfter(time.Minute, plain), want: OutcomeFailed, wantCause: dlq.CauseExhausted, breaker: breaker.OutcomeIgnored, after: time.Minute},
		{name: "snooze", err: Snooze(time.Hour, "night"), want: OutcomeDeferred, breaker: breaker.OutcomeIgnored, after: time.Hour},
		{name: "unavailable", err: Unavailable("db", plain), want: OutcomeFailed, wantCause: dlq.CauseExhausted, breaker: breaker.OutcomeFailure},
		{name: "stated cause", err: gone, want: OutcomeRejected, wantCause: dlq.CauseEndpointGone, breaker: breaker.OutcomeIgnored},
		{name: "statement without outcome fails", err: &Error{Err: plain}, want: OutcomeFailed, wantCause: dlq.CauseExhausted, breaker: breaker.OutcomeIgnored},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := classify(c.err, c.cause)
			if v.outcome != c.want || v.cause != c.wantCause || v.breaker != c.breaker || v.after != c.after || v.lost != c.lost {
				t.Errorf("classify(%v, %v) = %+v", c.err, c.cause, v)
			}
			if c.err != nil && v.err == nil {
				t.Error("the verdict lost its error")
			}
		})
	}
}

func TestUnavailableNamesItsDestination(t *testing.T) {
	t.Parallel()
	v := classify(Unavailable("ledger", errors.New("refused")), nil)
	if v.destination != "ledger" || v.err.Error() != "ledger: refused" {
		t.Errorf("got destination %q, error %q", v.destination, v.err)
	}
}
