package worker

// Outcome is what happened to one delivery of a job.
type Outcome uint8

// The outcomes.
const (
	// Succeeded: the handler returned nil.
	Succeeded Outcome = iota + 1
	// Duplicate: the key was already completed, or this run was already given up; nothing ran.
	Duplicate
	// Failed: the attempt was spent; there may be another.
	Failed
	// Rejected: the job can never succeed.
	Rejected
	// Deferred: put back with no attempt spent.
	Deferred
	// Interrupted: cut short by a stop or a lost lease; no attempt spent by a stop.
	Interrupted
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
	// Ack removes the message: the job is done.
	Ack Settlement = iota + 1
	// Retry hides the message for a delay.
	Retry
	// Release makes the message visible at once.
	Release
	// DeadLetter stores a dead letter and removes the message.
	DeadLetter
	// Hold stores the job with its sick destination's held jobs and removes the message.
	Hold
	// Leave does nothing: the lease or claim is somebody else's now.
	Leave
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
	ReasonNotDue      Reason = "not_due"
	ReasonPoolFull    Reason = "pool_full"
	ReasonClaimBusy   Reason = "claim_busy"
	ReasonStoreDown   Reason = "store_unavailable"
	ReasonUnknownKind Reason = "unknown_kind"
	ReasonSnoozed     Reason = "snoozed"
	// ReasonHeld: the handler said that the destination is paused.
	ReasonHeld Reason = "held"
	// ReasonBlocked: the job is a dead letter and keeps its place at the head of its group until that is replayed or purged.
	ReasonBlocked Reason = "blocked"
)
