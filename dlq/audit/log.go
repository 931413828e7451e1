package audit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Log keeps the records. The dead-letter stores of this module are logs too. Implementations are safe for concurrent use, and return
// dlq.ErrUnavailable where a call may be repeated.
type Log interface {
	// BeginAudit stores r as running and returns it as stored. To resume an operation, begin its ID again: Actor, Filter and Planned become
	// those of r, the counts and StartedAt stay. An ID of another action is an error.
	BeginAudit(ctx context.Context, r Record) (Record, error)
	// UpdateAudit says that the operation is alive and how far it came: c replaces the counts. It returns [ErrNotFound] for an unknown id.
	UpdateAudit(ctx context.Context, id string, c Counts) error
	// EndAudit is an UpdateAudit that ends the operation in any state but StateRunning. problem is why it failed or was interrupted.
	EndAudit(ctx context.Context, id string, state State, c Counts, problem string) error
	// Audit returns one record, or [ErrNotFound].
	Audit(ctx context.Context, id string) (Record, error)
	// Audits returns records, newest first by StartedAt, at most limit. after is the cursor of the previous page ("" for the first), else
	// the error wraps dlq.ErrCursor; next is "" on the last page.
	Audits(ctx context.Context, after string, limit int) (audits []Record, next string, err error)
}

// finishTimeout bounds the end of a record.
const finishTimeout = 10 * time.Second

// Finish ends the record of an operation: as done if problem is nil, as interrupted if ctx is over, else as failed. It writes the record
// even if ctx is over, and returns problem, joined with the error of writing.
func Finish(ctx context.Context, log Log, id string, c Counts, problem error) error {
	state, text := StateDone, ""
	switch {
	case problem != nil && ctx.Err() != nil:
		state, text = StateInterrupted, problem.Error()
	case problem != nil:
		state, text = StateFailed, problem.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := log.EndAudit(ctx, id, state, c, text); err != nil {
		return errors.Join(problem, fmt.Errorf("record the end in the audit log: %w", err))
	}
	return problem
}

// ErrNotFound means that there is no record with that id.
var ErrNotFound = errors.New("audit record not found")
