package pools

import (
	"fmt"
	"time"
)

// Outcome is what a breaker is told about a call.
type Outcome uint8

// The outcomes.
const (
	// OutcomeIgnored moves nothing: a throttle (429), a cancelled call, a lost lease, a client's own mistake. A probe's slot is free again.
	OutcomeIgnored Outcome = iota
	// OutcomeSuccess is an answer in time. It counts as Slow if it took longer than [BreakerConfig.SlowAfter].
	OutcomeSuccess
	// OutcomeFailure is an outage: no answer, or one that says that the destination is broken.
	OutcomeFailure
	// OutcomeSlow is an answer that came too late to be healthy.
	OutcomeSlow
)

// String returns the outcome in lower case.
func (o Outcome) String() string {
	return name(uint8(o), "ignored", "success", "failure", "slow")
}

// State is a breaker's state.
type State uint8

// The states.
const (
	// StateClosed lets calls through and counts them.
	StateClosed State = iota
	// StateOpen refuses calls until the open time is over.
	StateOpen
	// StateHalfOpen lets a few probes through.
	StateHalfOpen
)

// String returns the state in lower case.
func (s State) String() string { return name(uint8(s), "closed", "open", "half_open") }

// MarshalText implements [encoding.TextMarshaler].
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Override is an operator's word against the breaker's. It stands beside the state and does not change it.
type Override uint8

// The overrides.
const (
	// OverrideNone lets the breaker decide.
	OverrideNone Override = iota
	// OverrideOpen refuses every call.
	OverrideOpen
	// OverrideClosed admits every call that the other limits allow.
	OverrideClosed
)

// String returns the override in lower case.
func (o Override) String() string { return name(uint8(o), "none", "forced_open", "forced_closed") }

// MarshalText implements [encoding.TextMarshaler].
func (o Override) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Reason says why a call was refused. There are few of them: metrics use them as labels.
type Reason uint8

// The reasons.
const (
	// ReasonOK: not refused.
	ReasonOK Reason = iota
	// ReasonBreakerOpen: the breaker is open, all its probes are out, or its ramp holds the call back.
	ReasonBreakerOpen
	// ReasonThrottled: the destination is throttled (Retry-After) until a certain time. Its text is "gated".
	ReasonThrottled
	// ReasonRateLimited: no rate token, of the destination or of the whole registry.
	ReasonRateLimited
	// ReasonConcurrencyFull: as many calls as allowed are running.
	ReasonConcurrencyFull
	// ReasonBudgetEmpty: the call is a retry and the retry budget is spent.
	ReasonBudgetEmpty
	// ReasonForcedOpen: an operator forced the breaker open.
	ReasonForcedOpen
	// ReasonSlowLaneFull: the destination is slow, or new, and as many calls to such ones as allowed are running.
	ReasonSlowLaneFull
	// ReasonSharedOpen: the destination is shared, and the breaker of another worker is open.
	ReasonSharedOpen
	// ReasonOutranked: calls of a class before this one wait for the destination.
	ReasonOutranked
)

// String returns the reason in lower case.
func (r Reason) String() string {
	return name(uint8(r), "ok", "breaker_open", "gated", "rate_limited", "concurrency_full", "budget_empty", "forced_open",
		"slow_lane_full", "shared_open", "outranked")
}

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Verdict is the answer to a peek or an admission. The zero Verdict is a yes.
type Verdict struct {
	Reason Reason `json:"reason"`
	// Wait is when asking again makes sense, counted from now: exact for a breaker, a gate or a rate limit, a guess for the
	// rest. Zero with ReasonOK, else positive.
	Wait time.Duration `json:"wait"`
}

// OK reports that nothing stands against the call.
func (v Verdict) OK() bool { return v.Reason == ReasonOK }

func name(i uint8, names ...string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}
