package dlq

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue"
)

// Republished names a run that a replay started.
type Republished struct {
	Job string
	Run int
	Key idempotency.Key
}

// republication is an entry on its way back to a queue.
type republication struct {
	queue.Publication
	Republished
	id    string
	queue string
}

// republish returns e as the next run of its job: the same id, key, headers and payload bytes, with no attempts spent. The job's age
// counts from now, so that a kind's max age does not end it at once. An error says why e can never be published as it is.
func republish(e Entry, cfg ReplayConfig) (republication, error) {
	env, err := e.Message.Envelope()
	switch {
	case errors.Is(err, queue.ErrNoEnvelope):
		return republication{}, fmt.Errorf("not a job: %w; a replay needs one to number the run: export the entry and enqueue its payload as a new job", err)
	case err != nil:
		return republication{}, fmt.Errorf("the envelope cannot be read, so that no run can be started: export the entry and enqueue its payload as a new job: %w", err)
	}
	target := cmp.Or(cfg.Queue, e.Queue)
	if target == "" {
		return republication{}, errors.New("the queue that it came from is unknown: name one to replay to")
	}
	now := cfg.Now()
	if !env.Deadline.IsZero() && !now.Before(env.Deadline) {
		if !cfg.DropDeadline {
			return republication{}, fmt.Errorf("its deadline passed at %s and it would expire again: replay it without one, or purge it",
				env.Deadline.UTC().Format(time.RFC3339))
		}
		env.Deadline = time.Time{}
	}
	env.Run = e.Run + 1
	env.AttemptBase = 0
	if env.NotBefore.Before(now) {
		env.NotBefore = now
	}
	header, err := queue.EncodeEnvelope(env)
	if err != nil {
		return republication{}, fmt.Errorf("encode the next run: %w", err)
	}
	headers := maps.Clone(e.Message.Headers)
	headers[queue.HeaderEnvelope] = header
	return republication{
		Publication: queue.Publication{
			Message: queue.Message{Body: e.Message.Body, Headers: headers},
			Group:   e.Destination,
			DedupID: EntryID(env.ID, env.Run), // a new one for each run: a broker's window must not swallow it
		},
		Republished: Republished{
			Job: env.ID, Run: env.Run, Key: idempotency.Key{Scope: env.Kind, Value: cmp.Or(e.Key, env.Key, env.ID)},
		},
		id: e.ID, queue: target,
	}, nil
}
