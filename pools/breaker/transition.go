package breaker

import "time"

// TransitionReason says why a breaker changed. There are few of them: metrics use them as labels.
type TransitionReason string

// The reasons of transitions.
const (
	TransitionReasonFailureRate     TransitionReason = "failure_rate"
	TransitionReasonSlowRate        TransitionReason = "slow_rate"
	TransitionReasonFailuresInARow  TransitionReason = "failures_in_a_row"
	TransitionReasonNoAnswer        TransitionReason = "no_answer"
	TransitionReasonOpenElapsed     TransitionReason = "open_elapsed"
	TransitionReasonProbesSucceeded TransitionReason = "probes_succeeded"
	TransitionReasonProbesFailed    TransitionReason = "probes_failed"
	TransitionReasonReset           TransitionReason = "reset"
	TransitionReasonForcedOpen      TransitionReason = "forced_open"
	TransitionReasonForcedClosed    TransitionReason = "forced_closed"
	TransitionReasonOverrideCleared TransitionReason = "override_cleared"
)

// Transition is one change of a breaker. For a changed override From and To are the state, which the override leaves alone.
type Transition struct {
	// Destination is the normalised name; empty for a [Breaker] of its own.
	Destination string           `json:"destination"`
	From        State            `json:"from"`
	To          State            `json:"to"`
	Reason      TransitionReason `json:"reason"`
	At          time.Time        `json:"at"`
}
