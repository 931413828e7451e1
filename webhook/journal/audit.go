package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/webhook"
)

// auditTimeout bounds the end of a record, which comes also after an interruption.
const auditTimeout = 10 * time.Second

// record begins the record of a recovery in the audit log, and returns what ends it.
func (r *Recovery) record(ctx context.Context, e webhook.Endpoint, since time.Time) (end func(Recovered, error) error, err error) {
	if r.cfg.Audit == nil {
		return func(_ Recovered, problem error) error { return problem }, nil
	}
	id := "recover-" + uuid.NewString()
	filter := fmt.Sprintf("webhook endpoint %s since %s", e.ID, since.UTC().Format(time.RFC3339))
	// A recovery tells nothing between its beginning and its end.
	_, err = r.cfg.Audit.BeginAudit(ctx, dlq.Audit{ID: id, Action: "recover", Actor: r.cfg.Actor, Filter: filter, Silence: time.Hour})
	if err != nil {
		return nil, fmt.Errorf("record it in the audit log, without which nothing is begun: %w", err)
	}
	return func(done Recovered, problem error) error {
		state, text := dlq.AuditDone, ""
		switch {
		case problem != nil && ctx.Err() != nil:
			state, text = dlq.AuditInterrupted, problem.Error()
		case problem != nil:
			state, text = dlq.AuditFailed, problem.Error()
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
		defer cancel()
		counts := dlq.AuditCounts{Done: done.Missed + done.Replay.Replayed, Failed: done.Replay.Failed, Refused: done.Replay.Refused}
		if err := r.cfg.Audit.EndAudit(ctx, id, state, counts, text); err != nil {
			return errors.Join(problem, fmt.Errorf("record the end in the audit log: %w", err))
		}
		return problem
	}, nil
}
