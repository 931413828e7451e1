package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/webhook"
)

// record begins the record of a recovery in the audit log, and returns what ends it.
func (r *Recovery) record(ctx context.Context, e webhook.Endpoint, since time.Time) (end func(Recovered, error) error, err error) {
	if r.cfg.Audit == nil {
		return func(_ Recovered, problem error) error { return problem }, nil
	}
	id := "recover-" + uuid.NewString()
	filter := fmt.Sprintf("webhook endpoint %s since %s", e.ID, since.UTC().Format(time.RFC3339))
	// A recovery tells nothing between its beginning and its end.
	_, err = r.cfg.Audit.BeginAudit(ctx, audit.Record{ID: id, Action: "recover", Actor: r.cfg.Actor, Filter: filter, Silence: time.Hour})
	if err != nil {
		return nil, fmt.Errorf("record it in the audit log, without which nothing is begun: %w", err)
	}
	return func(done Recovered, problem error) error {
		counts := audit.Counts{Done: done.Missed + done.Replay.Replayed, Failed: done.Replay.Failed, Refused: done.Replay.Refused}
		return audit.Finish(ctx, r.cfg.Audit, id, counts, problem)
	}, nil
}
