package audit

import (
	"fmt"
	"time"
)

// Record is the record of one operation. Records are kept for [Retention].
type Record struct {
	// ID names the operation. A replay's is that of its configuration, so that an entry's ClosedBy leads here.
	ID string `json:"id"`
	// Action is replay, purge, import, export or another short word.
	Action string `json:"action"`
	// Actor is who asked for it, such as user@host.
	Actor string `json:"actor"`
	// Filter is what was selected, as text or JSON, for people.
	Filter string `json:"filter"`
	// Planned is how many entries matched at the start.
	Planned int `json:"planned"`
	Counts
	State State `json:"state"`
	// Problem is why it failed or was interrupted.
	Problem string `json:"problem,omitempty"`
	// Silence is how long a running operation may go without an update before it counts as interrupted. Zero means
	// [DefaultSilence].
	Silence time.Duration `json:"-"`
	// StartedAt, UpdatedAt and EndedAt are set by the log. EndedAt is zero until the end.
	StartedAt time.Time `json:"started_at"`
	UpdatedAt time.Time `json:"updated_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// Counts says how far an operation came.
type Counts struct {
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Refused int `json:"refused"`
}

// State is the state of an operation.
type State string

// The states of an operation.
const (
	StateRunning State = "running"
	StateDone    State = "done"
	StateFailed  State = "failed"
	// StateInterrupted: it was stopped, or it was killed, which shows by its silence.
	StateInterrupted State = "interrupted"
)

// ValidateEnd returns an error if s is not the end of an operation.
func (s State) ValidateEnd() error {
	switch s {
	case StateDone, StateFailed, StateInterrupted:
		return nil
	}
	return fmt.Errorf("audit record cannot end as %q: use %s, %s or %s", s, StateDone, StateFailed, StateInterrupted)
}

const (
	// DefaultSilence is how long a running operation may go without an update.
	DefaultSilence = 2 * time.Minute
	// Retention is how long a record is kept after its last update.
	Retention = 400 * 24 * time.Hour
)

// ForLog returns r as logs keep it when it begins at now. It returns an error if r cannot be stored.
func (r Record) ForLog(now time.Time) (Record, error) {
	if r.ID == "" || r.Action == "" || r.Planned < 0 || r.Silence < 0 {
		return r, fmt.Errorf("audit record %q: action %q, planned %d, silence %v: needs an id and an action, and nothing negative",
			r.ID, r.Action, r.Planned, r.Silence)
	}
	if r.Silence == 0 {
		r.Silence = DefaultSilence
	}
	r.State, r.Problem, r.Counts = StateRunning, "", Counts{}
	r.StartedAt, r.UpdatedAt, r.EndedAt = now, now, time.Time{}
	return r, nil
}

// At returns r as it is shown at now: a record that runs but has been silent for too long is interrupted.
func (r Record) At(now time.Time) Record {
	if r.State == StateRunning && now.Sub(r.UpdatedAt) > r.Silence {
		r.State = StateInterrupted
		r.Problem = "no sign of life since " + r.UpdatedAt.UTC().Format(time.RFC3339)
	}
	return r
}
