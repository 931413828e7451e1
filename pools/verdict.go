package pools

import (
	"fmt"
	"time"
)

// Reason says why a call was refused. There are few of them: metrics use them as labels.
type Reason uint8

// The reasons.
const (
	// ReasonOK: not refused.
	ReasonOK Reason = iota
	// ReasonBreakerOpen: the breaker is open, all its probes are out, or its ramp holds the call back.
	ReasonBreakerOpen
	// ReasonThrottled: the destination is throttled (Retry-After) until a certain time. Its text is "throttled".
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
	return reasonName(r, "ok", "breaker_open", "throttled", "rate_limited", "concurrency_full", "budget_empty", "forced_open",
		"slow_lane_full", "shared_open", "outranked")
}

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Verdict is the answer to a peek or an admission. The zero Verdict is a yes.
type Verdict struct {
	Reason Reason `json:"reason"`
	// Wait is when asking again makes sense, counted from now: exact for a breaker, throttling or a rate limit, a guess for the
	// rest. Zero with ReasonOK, else positive.
	Wait time.Duration `json:"wait"`
}

// OK reports that nothing stands against the call.
func (v Verdict) OK() bool { return v.Reason == ReasonOK }

func reasonName(r Reason, names ...string) string {
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("unknown(%d)", r)
}
