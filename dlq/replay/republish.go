package replay

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq"
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
	id          string
	queue       string
	destination string
	cause       dlq.Cause
	died        time.Time
	// keyed says that workers claim a key for it that is known here.
	keyed bool
}

// republish returns e as the next run of its job: the same id, key, headers and payload bytes, with no attempts spent. The job's age
// counts from now, so that a kind's max age does not end it at once. A message without an envelope goes as it was received and becomes a
// job of its own, named by the broker. An error says why e can never be published as it is.
func republish(e dlq.Entry, cfg Config) (republication, error) {
	r := republication{
		id: e.ID, queue: cmp.Or(cfg.Queue, e.Queue), destination: e.Destination, cause: e.Cause, died: diedAt(e),
	}
	if r.queue == "" {
		return r, errors.New("the queue that it came from is unknown: name one to replay to")
	}
	r.Publication = queue.Publication{
		Message: queue.Message{Body: e.Message.Body, Headers: maps.Clone(e.Message.Headers)},
		Group:   fairGroup(e),
		// A new one for each run, and for each payload of one id: a broker's window must not swallow it.
		DedupID: dlq.EntryID(e.Job, e.Run+1) + strings.TrimPrefix(e.ID, dlq.EntryID(e.Job, e.Run)),
	}
	r.Republished = Republished{Job: e.Job, Run: e.Run + 1, Key: idempotency.Key{Scope: e.Kind, Value: cmp.Or(e.Key, e.Job)}}
	env, err := e.Message.Envelope()
	switch {
	case errors.Is(err, queue.ErrNoEnvelope):
		return r, nil
	case err != nil:
		return r, fmt.Errorf("the envelope cannot be read, so that no run can be started: export the entry and enqueue its payload as a new job: %w", err)
	}
	if env, err = nextRun(env, e.Run+1, cfg); err != nil {
		return r, err
	}
	if r.Headers[queue.HeaderEnvelope], err = env.Encode(); err != nil {
		return r, fmt.Errorf("encode the next run: %w", err)
	}
	r.Republished = Republished{
		Job: env.ID, Run: env.Run, Key: idempotency.Key{Scope: env.Kind, Value: cmp.Or(e.Key, env.Key, env.ID)},
	}
	r.keyed = true
	return r, nil
}

// rekey gives the run a key of its own.
func (r *republication) rekey() error {
	env, err := r.Envelope()
	if err != nil {
		return fmt.Errorf("read the next run: %w", err)
	}
	env.Key = forcedKey(r.Key.Value, r.Run)
	r.Key.Value = env.Key
	if r.Headers[queue.HeaderEnvelope], err = env.Encode(); err != nil {
		return fmt.Errorf("encode the next run: %w", err)
	}
	return nil
}

// nextRun returns env as run n, with no attempts spent.
func nextRun(env queue.Envelope, n int, cfg Config) (queue.Envelope, error) {
	now := cfg.Now()
	if !env.Deadline.IsZero() && !now.Before(env.Deadline) {
		if !cfg.DropDeadline {
			return env, fmt.Errorf("its deadline passed at %s and it would expire again: replay it without one, or purge it",
				env.Deadline.UTC().Format(time.RFC3339))
		}
		env.Deadline = time.Time{}
	}
	env.Run, env.AttemptBase = n, 0
	if env.NotBefore.Before(now) {
		env.NotBefore = now
	}
	return env, nil
}

// fairGroup is the group of a publication: the entry's own on a FIFO queue, else its destination, by which brokers are fair.
func fairGroup(e dlq.Entry) string { return cmp.Or(e.Group, e.Destination) }
