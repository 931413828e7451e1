package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/caisson-go/caisson/internal/handlertx"
)

// Job is a decoded message on its way through the worker. Handlers and middleware get it by [JobFrom] or as an argument.
// They must not change it, except by SetResult.
type Job struct {
	// ID names the job over retries and replays.
	ID string
	// Kind is the name under which the handler is registered, with aliases resolved.
	Kind string
	// Version is the payload's version; 0 if unversioned.
	Version int
	// Payload holds the bytes as they were enqueued. Do not change them.
	Payload []byte
	// Key is the idempotency key: the producer's, else the kind's own, else ID.
	Key string
	// Destination is what breaker and limits isolate by; empty if the job has none.
	Destination string
	// Queue is where the job was received.
	Queue string
	// Headers are the producer's, trace headers among them. May be nil. Do not change them.
	Headers map[string]string
	// EnqueuedAt is when the producer made the job.
	EnqueuedAt time.Time
	// NotBefore is the earliest time to run; zero if the job was due at once.
	NotBefore time.Time
	// Deadline is when the job stops being worth running; zero means never.
	Deadline time.Time
	// Run is 0 in the job's first life and one more for each replay.
	Run int
	// Attempt is the number of this attempt, counted from 1.
	Attempt int
	// MaxAttempts is the kind's limit, or what the kind gives this job, the first attempt included.
	MaxAttempts int
	// Token fences the job's claim: it rises with each owner of the key. Pass it to systems that can refuse an older one. 0 if unkeyed.
	Token int64
	// DeliveryCount is how often the broker has handed the message over; 0 if it does not know. It is not the attempt.
	DeliveryCount int

	decoded any
	result  []byte
}

// SetResult keeps data as the job's result: a later delivery of the same key is told this result instead of running. Results over 64 KiB
// are replaced by their size and hash. Only the handler's own goroutine may call it; the last call wins. It has no effect without an
// idempotency store.
func (j *Job) SetResult(data []byte) { j.result = data }

// dueAt is when the job's waiting began to count: a delayed or replayed job does not age before it is due.
func (j *Job) dueAt() time.Time {
	if j.NotBefore.After(j.EnqueuedAt) {
		return j.NotBefore
	}
	return j.EnqueuedAt
}

type jobKey struct{}

// jobContext is the handler's context: it knows its job, so that no wrapping context has to.
type jobContext struct {
	context.Context
	end     context.CancelFunc
	attempt *attempt
	job     *Job
	logger  *slog.Logger
}

// Value implements [context.Context].
func (c *jobContext) Value(key any) any {
	switch key.(type) {
	case jobKey, handlertx.Key:
		return c
	}
	return c.Context.Value(key)
}

// JobFrom returns the job that ctx belongs to, or nil outside a handler.
func JobFrom(ctx context.Context) *Job {
	if jc, ok := ctx.Value(jobKey{}).(*jobContext); ok {
		return jc.job
	}
	return nil
}

// Logger returns a logger that adds the job's id, kind, queue and attempt. Outside a handler it returns [slog.Default].
func Logger(ctx context.Context) *slog.Logger {
	jc, ok := ctx.Value(jobKey{}).(*jobContext)
	if !ok {
		return slog.Default()
	}
	return slog.New(&jobLog{Handler: jc.logger.Handler(), job: jc.job})
}

// jobLog adds the job's attributes when a record is written, so that a disabled level costs nothing.
type jobLog struct {
	slog.Handler
	job *Job
}

// Handle implements [slog.Handler].
func (h *jobLog) Handle(ctx context.Context, r slog.Record) error {
	return h.WithAttrs(nil).Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *jobLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	j := h.job
	own := []slog.Attr{slog.String("job", j.ID), slog.String("kind", j.Kind), slog.String("queue", j.Queue), slog.Int("attempt", j.Attempt)}
	return h.Handler.WithAttrs(append(own, attrs...))
}

// WithGroup implements [slog.Handler].
func (h *jobLog) WithGroup(name string) slog.Handler { return h.WithAttrs(nil).WithGroup(name) }
