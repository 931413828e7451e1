package breaker

import "fmt"

// Outcome is what a breaker is told about a call.
type Outcome uint8

// The outcomes.
const (
	// OutcomeIgnored moves nothing: a throttle (429), a cancelled call, a lost lease, a client's own mistake. A probe's slot is free again.
	OutcomeIgnored Outcome = iota
	// OutcomeSuccess is an answer in time. It counts as Slow if it took longer than [Config.SlowAfter].
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

func name(i uint8, names ...string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}
