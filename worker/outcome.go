package worker

// Outcome is what happened to one delivery of a job.
type Outcome uint8

// The outcomes.
const (
	// OutcomeSucceeded: the handler returned nil.
	OutcomeSucceeded Outcome = iota + 1
	// OutcomeDuplicate: the key was completed or the run given up before; nothing ran.
	OutcomeDuplicate
	// OutcomeFailed: the attempt was spent; there may be another.
	OutcomeFailed
	// OutcomeRejected: the job can never succeed.
	OutcomeRejected
	// OutcomeDeferred: put back with no attempt spent.
	OutcomeDeferred
	// OutcomeInterrupted: ended by a stop, which spends no attempt, or by a lost lease or claim.
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

// Settlement is how a delivery was settled.
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
	// SettlementLeave does nothing: another worker has the lease or claim.
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

// Reasons of a deferral, in [Settled]. The texts of [pools.Reason] (breaker_open, rate_limited and so on) are the others.
const (
	ReasonNotDue           = "not_due"
	ReasonPoolFull         = "pool_full"
	ReasonClaimBusy        = "claim_busy"
	ReasonStoreUnavailable = "store_unavailable"
	ReasonUnknownKind      = "unknown_kind"
	ReasonSnoozed          = "snoozed"
	// ReasonHeld: the handler reported a paused destination.
	ReasonHeld = "held"
	// ReasonBlocked: the job is a dead letter that blocks its group until it is replayed or purged.
	ReasonBlocked = "blocked"
)
