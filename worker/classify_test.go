package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools"
)

func TestClassify(t *testing.T) {
	plain := errors.New("boom")
	gone := &Error{Outcome: Rejected, Err: plain, Cause: dlq.CauseEndpointGone, Breaker: pools.Ignored}
	for _, c := range []struct {
		name       string
		err, cause error
		want       Outcome
		wantCause  dlq.Cause
		breaker    pools.Outcome
		after      time.Duration
		lost       bool
	}{
		{name: "nil succeeds", want: Succeeded, breaker: pools.Success},
		{name: "late success is a success", cause: ErrTimeout, want: Succeeded, breaker: pools.Success},
		{name: "success during a stop is a success", cause: ErrStopping, want: Succeeded, breaker: pools.Success},
		{name: "success after a lost claim is left to the settler", cause: ErrClaimLost, want: Succeeded, breaker: pools.Success},
		{name: "plain error fails and feeds the breaker", err: plain, want: Failed, wantCause: dlq.CauseExhausted, breaker: pools.Failure},
		{name: "wrapped plain error", err: fmt.Errorf("a: %w", plain), want: Failed, wantCause: dlq.CauseExhausted, breaker: pools.Failure},
		{name: "timeout", err: context.DeadlineExceeded, cause: ErrTimeout, want: Failed, wantCause: dlq.CauseTimeout, breaker: pools.Failure},
		{name: "stop", err: context.Canceled, cause: ErrStopping, want: Interrupted, breaker: pools.Ignored},
		{name: "claim lost", err: context.Canceled, cause: ErrClaimLost, want: Interrupted, breaker: pools.Ignored, lost: true},
		{name: "lease lost", err: context.Canceled, cause: ErrLeaseLost, want: Interrupted, breaker: pools.Ignored, lost: true},
		{name: "panic", err: &PanicError{Value: "x"}, want: Failed, wantCause: dlq.CausePanic, breaker: pools.Ignored},
		{name: "panic during a stop still counts", err: &PanicError{Value: "x"}, cause: ErrStopping, want: Failed, wantCause: dlq.CausePanic, breaker: pools.Ignored},
		{name: "cancel", err: Cancel(plain), want: Rejected, wantCause: dlq.CauseRejected, breaker: pools.Ignored},
		{name: "wrapped cancel", err: fmt.Errorf("a: %w", Cancel(plain)), want: Rejected, wantCause: dlq.CauseRejected, breaker: pools.Ignored},
		{name: "retry after", err: RetryAfter(time.Minute, plain), want: Failed, wantCause: dlq.CauseExhausted, breaker: pools.Ignored, after: time.Minute},
		{name: "snooze", err: Snooze(time.Hour, "night"), want: Deferred, breaker: pools.Ignored, after: time.Hour},
		{name: "unavailable", err: Unavailable("db", plain), want: Failed, wantCause: dlq.CauseExhausted, breaker: pools.Failure},
		{name: "stated cause", err: gone, want: Rejected, wantCause: dlq.CauseEndpointGone, breaker: pools.Ignored},
		{name: "statement without outcome fails", err: &Error{Err: plain}, want: Failed, wantCause: dlq.CauseExhausted, breaker: pools.Ignored},
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
	v := classify(Unavailable("ledger", errors.New("refused")), nil)
	if v.destination != "ledger" || v.err.Error() != "ledger: refused" {
		t.Errorf("got destination %q, error %q", v.destination, v.err)
	}
}
