package worker

// Outcome is what happened to one delivery of a job.
type Outcome uint8

// The outcomes.
const (
	// OutcomeSucceeded: the handler returned nil.
	OutcomeSucceeded Outcome = iota + 1
	// OutcomeDuplicate: the key was already completed, or this run was already given up; nothing ran.
	OutcomeDuplicate
	// OutcomeFailed: the attempt was spent; there may be another.
	OutcomeFailed
	// OutcomeRejected: the job can never succeed.
	OutcomeRejected
	// OutcomeDeferred: put back with no attempt spent.
	OutcomeDeferred
	// OutcomeInterrupted: cut short by a stop or a lost lease; no attempt spent by a stop.
	OutcomeInterrupted
)

// String returns the outcome in lower case, as metrics and logs spell it.
func (o Outcome) String() string {
	names := [...]string{"invalid", "succeeded", "duplicate", "failed", "rejected", "deferred", "interrupted"}
	if int(o) < len(names) {
		return names[o]
	}
	return names[0]
}

// Settlement is what was decided for a delivery.
type Settlement uint8

// The settlements.
const (
	// SettlementAck removes the message: the job is done.
	SettlementAck Settlement = iota + 1
	// SettlementRetry hides the message for a delay.
	SettlementRetry
	// SettlementRelease makes the message visible at once.
	SettlementRelease
	// SettlementDeadLetter stores a dead letter and removes the message.
	SettlementDeadLetter
	// SettlementHold stores the job with its sick destination's held jobs and removes the message.
	SettlementHold
	// SettlementLeave does nothing: the lease or claim is somebody else's now.
	SettlementLeave
)

// String returns the settlement as metrics and logs spell it.
func (s Settlement) String() string {
	names := [...]string{"invalid", "ack", "retry", "release", "dead_letter", "hold", "leave"}
	if int(s) < len(names) {
		return names[s]
	}
	return names[0]
}

// Reason is the bounded class of why a job was deferred; empty for other outcomes.
type Reason string

// The reasons of a deferral. Those of pools.Reason (breaker_open, rate_limited and so on) come beside them.
const (
	ReasonNotDue           Reason = "not_due"
	ReasonPoolFull         Reason = "pool_full"
	ReasonClaimBusy        Reason = "claim_busy"
	ReasonStoreUnavailable Reason = "store_unavailable"
	ReasonUnknownKind      Reason = "unknown_kind"
	ReasonSnoozed          Reason = "snoozed"
	// ReasonHeld: the handler said that the destination is paused.
	ReasonHeld Reason = "held"
	// ReasonBlocked: the job is a dead letter and keeps its place at the head of its group until that is replayed or purged.
	ReasonBlocked Reason = "blocked"
)
