package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// AuditLog keeps a record of every operation that people do on many entries. The stores in this module are audit logs too.
// Implementations are safe for concurrent use and return [ErrUnavailable] like a [Store].
type AuditLog interface {
	// BeginAudit stores a as running and returns it as stored. Where a record of that ID and action exists, it goes on: Actor, Filter and
	// Planned become those of a, the counts and StartedAt stay. That is how an operation is resumed. An ID of another action is
	// an error.
	BeginAudit(ctx context.Context, a Audit) (Audit, error)
	// UpdateAudit says that the operation is alive, and how far it came in all: c replaces the counts. It returns [ErrNoAudit] for an
	// unknown id.
	UpdateAudit(ctx context.Context, id string, c AuditCounts) error
	// EndAudit is UpdateAudit that ends the operation. state is not AuditStateRunning. problem is why it failed or was interrupted.
	EndAudit(ctx context.Context, id string, state AuditState, c AuditCounts, problem string) error
	// Audit returns one record, or [ErrNoAudit].
	Audit(ctx context.Context, id string) (Audit, error)
	// Audits returns records, newest first by StartedAt, at most limit. after is the cursor of the previous page ("" for the first), else
	// the error wraps [ErrCursor]; next is "" on the last page.
	Audits(ctx context.Context, after string, limit int) (audits []Audit, next string, err error)
}

// Audit is the record of one operation. Records are kept for [AuditRetention].
type Audit struct {
	// ID names the operation. A replay's is [ReplayConfig.ID], so that [Entry.ClosedBy] leads here.
	ID string `json:"id"`
	// Action is replay, purge, import, export or another short word.
	Action string `json:"action"`
	// Actor is who asked for it, such as user@host.
	Actor string `json:"actor"`
	// Filter is what was selected, as text or JSON, for people.
	Filter string `json:"filter"`
	// Planned is how many entries matched at the start.
	Planned int `json:"planned"`
	AuditCounts
	State AuditState `json:"state"`
	// Problem is why it failed or was interrupted.
	Problem string `json:"problem,omitempty"`
	// Silence is how long a running operation may go without an update before it counts as interrupted. Zero means
	// [DefaultAuditSilence].
	Silence time.Duration `json:"-"`
	// StartedAt, UpdatedAt and EndedAt are set by the log. EndedAt is zero until the end.
	StartedAt time.Time `json:"started_at"`
	UpdatedAt time.Time `json:"updated_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// AuditCounts says how far an operation came.
type AuditCounts struct {
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Refused int `json:"refused"`
}

// AuditState is the state of an operation.
type AuditState string

// The states of an operation.
const (
	AuditStateRunning AuditState = "running"
	AuditStateDone    AuditState = "done"
	AuditStateFailed  AuditState = "failed"
	// AuditStateInterrupted: it was stopped, or it was killed, which shows by its silence.
	AuditStateInterrupted AuditState = "interrupted"
)

const (
	// DefaultAuditSilence is how long a running operation may go without an update.
	DefaultAuditSilence = 2 * time.Minute
	// AuditRetention is how long a record is kept after its last update.
	AuditRetention = 400 * 24 * time.Hour
)

// finishTimeout bounds the end of a record.
const finishTimeout = 10 * time.Second

// FinishAudit ends the record of an operation that ended with problem, nil if it was done: as interrupted if ctx is over, which does not keep the
// record from being written. It returns problem, joined with what went wrong with the record.
func FinishAudit(ctx context.Context, log AuditLog, id string, c AuditCounts, problem error) error {
	state, text := AuditStateDone, ""
	switch {
	case problem != nil && ctx.Err() != nil:
		state, text = AuditStateInterrupted, problem.Error()
	case problem != nil:
		state, text = AuditStateFailed, problem.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := log.EndAudit(ctx, id, state, c, text); err != nil {
		return errors.Join(problem, fmt.Errorf("record the end in the audit log: %w", err))
	}
	return problem
}

// ErrNoAudit means that there is no record with that id.
var ErrNoAudit = errors.New("audit record not found")

// ForLog returns a as logs keep it when it begins at now. It returns an error if a cannot be stored.
func (a Audit) ForLog(now time.Time) (Audit, error) {
	if a.ID == "" || a.Action == "" || a.Planned < 0 || a.Silence < 0 {
		return a, fmt.Errorf("audit record %q: action %q, planned %d, silence %v: needs an id and an action, and nothing negative",
			a.ID, a.Action, a.Planned, a.Silence)
	}
	if a.Silence == 0 {
		a.Silence = DefaultAuditSilence
	}
	a.State, a.Problem, a.AuditCounts = AuditStateRunning, "", AuditCounts{}
	a.StartedAt, a.UpdatedAt, a.EndedAt = now, now, time.Time{}
	return a, nil
}

// At returns a as it is to be shown at now: a record that runs in silence is interrupted.
func (a Audit) At(now time.Time) Audit {
	if a.State == AuditStateRunning && now.Sub(a.UpdatedAt) > a.Silence {
		a.State = AuditStateInterrupted
		a.Problem = "no sign of life since " + a.UpdatedAt.UTC().Format(time.RFC3339)
	}
	return a
}

// CheckAuditEnd returns an error if state is no end.
func CheckAuditEnd(state AuditState) error {
	switch state {
	case AuditStateDone, AuditStateFailed, AuditStateInterrupted:
		return nil
	}
	return fmt.Errorf("audit record cannot end as %q: use %s, %s or %s", state, AuditStateDone, AuditStateFailed, AuditStateInterrupted)
}
