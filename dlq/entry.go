package dlq

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-go/caisson/internal/truncate"
	"github.com/caisson-go/caisson/queue"
)

// State of an entry.
type State string

// The states.
const (
	// StateDead entries wait for an operator. They are the DLQ's depth.
	StateDead State = "dead"
	// StateHeld entries wait for their destination to recover and are released by workers. They are not part of the depth.
	StateHeld State = "held"
	// StateReplayed entries were published again as the next run.
	StateReplayed State = "replayed"
	// StatePurged entries were given up by an operator; their payload is gone.
	StatePurged State = "purged"
)

// States lists all states.
func States() []State { return []State{StateDead, StateHeld, StateReplayed, StatePurged} }

// Cause is the class of reason for which a job ended here. Classes are few and bounded: metrics use them as labels.
type Cause string

// The causes.
const (
	// CauseExhausted: the last attempt failed with an ordinary error.
	CauseExhausted Cause = "exhausted"
	// CauseTimeout: the last attempt ran into the job's timeout.
	CauseTimeout Cause = "timeout"
	// CausePanic: the last attempt panicked or ended its goroutine.
	CausePanic Cause = "panic"
	// CauseWorkerLost: the last attempt never reported: the process died or lost its lease.
	CauseWorkerLost Cause = "worker_lost"
	// CauseRejected: the handler said that the job can never succeed.
	CauseRejected Cause = "rejected"
	// CauseUndecodable: the envelope or payload could not be read.
	CauseUndecodable Cause = "undecodable"
	// CauseUnknownKind: no worker knew the kind for too long.
	CauseUnknownKind Cause = "unknown_kind"
	// CauseExpired: the job's deadline or max age passed before it could run.
	CauseExpired Cause = "expired"
	// CauseMismatch: the job's key belongs to another payload.
	CauseMismatch Cause = "idempotency_mismatch"
	// CauseEndpointGone: the webhook endpoint answered 410 or is disabled.
	CauseEndpointGone Cause = "endpoint_gone"
	// CauseTooLarge: the message is larger than the broker's or the configured limit.
	CauseTooLarge Cause = "too_large"
	// CauseDestinationOpen: held, since the destination's breaker has been open for long.
	CauseDestinationOpen Cause = "destination_open"
	// CauseBroker: the broker itself moved the message to its dead-letter queue, after too many deliveries, and nothing more is known.
	CauseBroker Cause = "broker"
)

// Causes lists all causes.
func Causes() []Cause {
	return []Cause{
		CauseExhausted, CauseTimeout, CausePanic, CauseWorkerLost, CauseRejected, CauseUndecodable, CauseUnknownKind,
		CauseExpired, CauseMismatch, CauseEndpointGone, CauseTooLarge, CauseDestinationOpen, CauseBroker,
	}
}

// The most bytes of error texts that an entry keeps.
const (
	// MaxError limits the last error.
	MaxError = 4 << 10
	// MaxAttemptError limits the error of each attempt.
	MaxAttemptError = 512
)

// Entry is one job that was given up or is held.
type Entry struct {
	// ID is [EntryID] of Job and Run, or [OtherEntryID] where that is the place of another payload.
	ID string `json:"id"`
	// Job is the job's id; for a message that could not be decoded the broker's id, prefixed with the queue.
	Job string `json:"job"`
	// Run is the run that ended here.
	Run   int   `json:"run"`
	State State `json:"state"`

	Queue       string `json:"queue"`
	Kind        string `json:"kind"`
	Key         string `json:"key,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Group is the message's unit of order where its queue is FIFO. Empty elsewhere.
	Group string `json:"group,omitempty"`

	Cause Cause `json:"cause"`
	// Error is the last error, cut to [MaxError] bytes on a rune boundary.
	Error string `json:"error"`
	// Fingerprint groups errors that differ only in numbers, ids and addresses. See [FingerprintError].
	Fingerprint string `json:"fingerprint"`
	// Attempts holds the failed attempts that are known, oldest first.
	Attempts []FailedAttempt `json:"attempts,omitempty"`
	// AttemptCount is how many attempts were spent; more than len(Attempts) where a process died or no ledger was kept.
	AttemptCount int `json:"attempt_count"`
	// Replays is how many replays led to this run. It equals Run.
	Replays int `json:"replays"`

	EnqueuedAt    time.Time `json:"enqueued_at"`
	FirstFailedAt time.Time `json:"first_failed_at"`
	LastFailedAt  time.Time `json:"last_failed_at"`
	// StoredAt is when the entry was put, or became Dead after it was Held. The store sets it.
	StoredAt time.Time `json:"stored_at"`
	// ChangedAt is when the state last changed. The store sets it.
	ChangedAt time.Time `json:"changed_at"`
	// ClosedBy is the owner whose reservation ended in Replayed: the replay's id, which its [audit.Record] record has too. Empty in other
	// states. The store sets it.
	ClosedBy string `json:"closed_by,omitempty"`

	// Message is the original: body and headers as they were received. Lists leave it out.
	Message queue.Message `json:"-"`
}

// FailedAttempt is one failed attempt.
type FailedAttempt struct {
	Number  int       `json:"number"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Error   string    `json:"error"`
}

// ForStore returns e as stores keep it, put at now: with its id, times, replays and fingerprint set and its errors cut. It
// returns an error if e cannot be stored.
func (e Entry) ForStore(now time.Time) (Entry, error) {
	switch {
	case e.Job == "" || e.Run < 0:
		return e, fmt.Errorf("dead letter of job %q, run %d: needs a job and a run of 0 or more", e.Job, e.Run)
	case e.State != StateDead && e.State != StateHeld:
		return e, fmt.Errorf("dead letter of job %q: state %q cannot be put: use %q or %q", e.Job, e.State, StateDead, StateHeld)
	}
	e.ID = EntryID(e.Job, e.Run)
	e.Replays = e.Run
	e.Error = truncate.Text(e.Error, MaxError)
	if e.Fingerprint == "" {
		e.Fingerprint = FingerprintError(e.Error)
	}
	e.Attempts = slices.Clone(e.Attempts)
	for i := range e.Attempts {
		e.Attempts[i].Error = truncate.Text(e.Attempts[i].Error, MaxAttemptError)
	}
	e.StoredAt, e.ChangedAt, e.ClosedBy = now, now, ""
	return e, nil
}

// EntryID returns the id of the entry for one run of a job: the job's id, a dot and the run.
func EntryID(job string, run int) string { return fmt.Sprintf("%s.%d", job, run) }

// OtherEntryID returns the id of an entry whose [EntryID] belongs to another payload: jobs without an idempotency key may come twice under
// one id. It depends on the payload alone, so that storing stays safe to repeat.
func OtherEntryID(job string, run int, body []byte) string {
	sum := sha256.Sum256(body)
	return EntryID(job, run) + "~" + hex.EncodeToString(sum[:4])
}

// fairGroup is the group of a publication: the entry's own on a FIFO queue, else its destination, by which brokers are fair.
func (e Entry) fairGroup() string { return cmp.Or(e.Group, e.Destination) }
