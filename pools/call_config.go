package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
)

// CallConfig tunes the defence around calls to one dependency that return a T. The zero value is a timeout of 10 s and one attempt.
type CallConfig[T any] struct {
	// Name is the dependency's, for errors and display. Empty means "dependency".
	Name string
	// Timeout bounds the whole call: waiting, attempts and backoff. The fallback comes on top. Zero means 10 s.
	Timeout time.Duration
	// AttemptTimeout bounds one attempt. Zero means that only Timeout does.
	AttemptTimeout time.Duration
	// Bulkhead is held for the whole call. Callers wait in its queue. Nil means none.
	Bulkhead *Bulkhead
	// Breaker sees one call, whatever happens inside. Nil means none.
	Breaker *breaker.Breaker
	// Admit asks the breaker and the limits of a destination: see [Destinations.For]. It sees one call, too. Nil means none.
	Admit func(now time.Time) (Permit, Verdict)
	// Budget bounds retries and hedges, beside the budget of the destination behind Admit. Nil means none.
	Budget *budget.Budget
	// MaxAttempts includes the first. Zero means 3. Without Retryable there is only one.
	MaxAttempts int
	// Backoff is the wait after so many failed attempts, counted from 1. Nil means a random time up to
	// min(100 ms * 2^(failed-1), 30 s).
	Backoff func(failed int) time.Duration
	// Retryable says which errors are worth another attempt. For a call that is not idempotent it must be true only where the
	// call certainly was not carried out, such as a refused connection. Nil means none.
	Retryable func(error) bool
	// Throttled says which errors are a throttle (429) and not an outage: they cost less of an AWS budget. Nil means none.
	Throttled func(error) bool
	// Outcome tells the breaker what an error means. It is not asked about nil (Success) or when the caller cancelled
	// (Ignored). Nil means Failure for all.
	Outcome func(error) breaker.Outcome
	// Idempotent says that a call may be carried out twice. Without it there is no hedge.
	Idempotent bool
	// HedgeAfter is how long an attempt may take before a second one is started beside it: the 95th percentile of latency, or
	// more. The hedge spends budget like a retry. Zero means no hedge.
	HedgeAfter time.Duration
	// Fallback is asked for a substitute when a call has failed or was refused, with the caller's context and the error. It is not asked when
	// nobody waits any more. Nil means none.
	Fallback func(ctx context.Context, err error) (T, error)
	// Observe is called for each [CallEvent], in the goroutine of the call. Nil means none.
	Observe func(CallEvent)
}

// CallEvent is something that happened in a call, in the words of its policy's counters.
type CallEvent string

// The events.
const (
	// CallEventRefused: the bulkhead was full, or the breaker or a limit said no.
	CallEventRefused CallEvent = "refused"
	// CallEventRetried: another attempt was made.
	CallEventRetried CallEvent = "retried"
	// CallEventRetryRefused: another attempt or a hedge was due, but the budget or a limit said no.
	CallEventRetryRefused CallEvent = "retry_refused"
	// CallEventHedged: a second attempt was started beside a slow one.
	CallEventHedged CallEvent = "hedged"
	// CallEventHedgeWon: the second one answered first.
	CallEventHedgeWon CallEvent = "hedge_won"
	// CallEventFellBack: the fallback was asked. An alert belongs on its rate: fallbacks hide outages.
	CallEventFellBack CallEvent = "fell_back"
	// CallEventFallbackFailed: the fallback failed too.
	CallEventFallbackFailed CallEvent = "fallback_failed"
)

// ErrRefused means that a call was not made because a breaker or limit said no. See [RefusedError] for which.
var ErrRefused = errors.New("call refused")

// RefusedError tells why a call was not made. It matches [ErrRefused].
type RefusedError struct {
	Name    string
	Verdict Verdict
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("call to %s refused: %s, ask again in %v", e.Name, e.Verdict.Reason, e.Verdict.Wait)
}

// Is reports that a RefusedError is [ErrRefused].
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

func (c CallConfig[T]) withDefaults() CallConfig[T] {
	c.Name = cmp.Or(c.Name, "dependency")
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 3)
	if c.Admit == nil {
		c.Admit = func(time.Time) (Permit, Verdict) { return Permit{}, Verdict{} }
	}
	if c.Backoff == nil {
		c.Backoff = defaultBackoff
	}
	if c.Retryable == nil {
		c.Retryable = func(error) bool { return false }
	}
	if c.Throttled == nil {
		c.Throttled = func(error) bool { return false }
	}
	if c.Outcome == nil {
		c.Outcome = func(error) breaker.Outcome { return breaker.OutcomeFailure }
	}
	return c
}

func defaultBackoff(failed int) time.Duration {
	limit := min(float64(100*time.Millisecond)*math.Pow(2, float64(failed-1)), float64(30*time.Second))
	return time.Duration(rand.Float64() * limit)
}

func (c CallConfig[T]) validate() error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("timeout %v: use a positive duration, or 0 for 10s", c.Timeout)
	case c.AttemptTimeout < 0:
		return fmt.Errorf("attempt timeout %v: use a positive duration, or 0 for none", c.AttemptTimeout)
	case c.MaxAttempts < 1:
		return fmt.Errorf("max attempts %d: use at least 1", c.MaxAttempts)
	case c.HedgeAfter < 0:
		return fmt.Errorf("hedge after %v: use a positive duration, or 0 for none", c.HedgeAfter)
	case c.HedgeAfter > 0 && !c.Idempotent:
		return errors.New("hedge after is set for calls that are not idempotent: set idempotent if they may run twice, or drop the hedge")
	}
	return nil
}

// outcome is what the breaker is told about a whole call.
func (c *CallConfig[T]) outcome(ctx context.Context, err error) breaker.Outcome {
	switch {
	case err == nil:
		return breaker.OutcomeSuccess
	case errors.Is(ctx.Err(), context.Canceled):
		return breaker.OutcomeIgnored
	}
	return c.Outcome(err)
}

// admit asks the breaker, then the destination: both or none.
func (c *CallConfig[T]) admit(now time.Time) (trial breaker.Permit, permit Permit, v Verdict) {
	if c.Breaker != nil {
		var wait time.Duration
		if trial, wait = c.Breaker.Admit(now); wait > 0 {
			v = Verdict{Reason: ReasonBreakerOpen, Wait: wait}
			if c.Breaker.Override() == breaker.OverrideOpen {
				v.Reason = ReasonForcedOpen
			}
			return trial, permit, v
		}
	}
	if permit, v = c.Admit(now); !v.OK() {
		trial.Cancel(now)
	}
	return trial, permit, v
}

// retryOf is what another try after an error costs.
func (c *CallConfig[T]) retryOf(err error) budget.Try {
	if c.Throttled(err) {
		return budget.TryThrottled
	}
	return budget.TryRetry
}
