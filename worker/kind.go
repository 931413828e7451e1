package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/schedule"
)

// Kind defines a type of job whose payload is a T. It is a plain value: declare it once and share it between the code that enqueues and
// the code that handles.
//
// T is decoded from JSON, unless it is []byte or json.RawMessage, which get the payload untouched. Numbers in fields of type any arrive
// as json.Number, so that no digit is lost.
type Kind[T any] struct {
	// Name is the kind's name, for example "email.send". Required; at most 200 printable ASCII characters, no spaces.
	Name string
	// Aliases are former names under which jobs may still wait.
	Aliases []string
	// Version of the payload that the handler understands. Zero takes every version that no other registration of Name takes.
	Version int
	// Queue is where [Client.Enqueue] puts jobs of this kind. Empty means the client's default.
	Queue string
	// Key derives the idempotency key of jobs that were enqueued without one. Nil, or an empty answer, means the job's id.
	Key func(T) string
	// Destination derives the destination of jobs that were enqueued without one. Nil, or an empty answer, means Config.Destination.
	Destination func(T) string
	// Attempts gives one job another number of attempts than Config.MaxAttempts, the first included. It is asked at each delivery and must be quick.
	// Nil, or 0, means Config.MaxAttempts.
	Attempts func(*Job) int
	// Strict refuses payloads with fields that T does not have. Such jobs go to the dead letters as undecodable.
	Strict bool
	// Config holds the kind's limits. The binary's configuration may override it.
	Config KindConfig
}

// KindConfig holds the limits of one kind.
type KindConfig struct {
	// Timeout bounds one attempt. Default 30 s.
	Timeout time.Duration
	// AdaptiveTimeout lets the timeout follow how long attempts take, between its Floor and Timeout, which is its ceiling. The zero value
	// keeps the timeout.
	AdaptiveTimeout adaptive.TimeoutConfig
	// TimeoutGrace is how long a handler that ignores its timeout keeps its lease before the attempt is failed and the handler abandoned.
	// Default 5 s.
	TimeoutGrace time.Duration
	// MaxAttempts is how many attempts a job has, the first included. Default 4.
	MaxAttempts int
	// Backoff gives the delay after a failed attempt. Default schedule.QueueBackoff: 30 s, 2 min, 10 min.
	Backoff schedule.Backoff
	// Bulkhead is how many jobs of this kind may run at once in this worker. Zero shares the slots that sized kinds leave.
	Bulkhead int
	// Adaptive lets the bulkhead's size find itself between Adaptive.Min and Bulkhead by how attempts go. What counts is what a breaker
	// would hear; a throttle counts as slow. The zero value keeps the size. It needs a Bulkhead.
	Adaptive adaptive.LimitConfig
	// Waiting is how many jobs may wait in this worker for the bulkhead, each holding a slot and its lease, before others are
	// deferred. Nil means as many as Bulkhead, at most an even part of the slots that are left, and none beside kinds without a Bulkhead.
	// Zero means none. Ignored without Bulkhead.
	Waiting *int
	// Keyed reports whether each attempt takes a claim on the job's key. Nil means yes if the worker has a store. True refuses a worker
	// without one. False runs the handler at least once per job, with attempts counted by the broker.
	Keyed *bool
	// MaxAge is how long after it was due a job may still be started; later it goes to the dead letters as expired. Default 24 h. It
	// must be below the key retention.
	MaxAge time.Duration
	// Destination is the destination of jobs that name none. Empty means none: no breaker, no limits.
	Destination string
}

func (c KindConfig) withDefaults() KindConfig {
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.TimeoutGrace == 0 {
		c.TimeoutGrace = 5 * time.Second
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 4
	}
	if c.Backoff.IsZero() {
		c.Backoff = schedule.QueueBackoff
	}
	if c.MaxAge == 0 {
		c.MaxAge = 24 * time.Hour
	}
	return c
}

func (c KindConfig) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Timeout > 0, "timeout %s: must be positive", c.Timeout)
	check(c.TimeoutGrace > 0, "timeout grace %s: must be positive", c.TimeoutGrace)
	check(c.MaxAttempts > 0, "max attempts %d: must be at least 1, the first attempt included", c.MaxAttempts)
	check(c.Bulkhead >= 0, "bulkhead %d: must not be negative; 0 means no size of its own", c.Bulkhead)
	if c.Waiting != nil {
		check(*c.Waiting >= 0, "waiting %d: must not be negative; 0 means none", *c.Waiting)
	}
	check(c.Adaptive.Max == 0, "adaptive max %d: leave it out, since the bulkhead of %d says it", c.Adaptive.Max, c.Bulkhead)
	if c.Adaptive.Adapts() {
		check(c.Bulkhead > 0, "adaptive min %d: needs a bulkhead, whose size it lowers", *c.Adaptive.Min)
	}
	check(c.MaxAge > 0, "max age %s: must be positive", c.MaxAge)
	return errors.Join(errs...)
}

// New returns a job of this kind, ready for [Client.Enqueue]. Set further fields on the result as needed.
func (k Kind[T]) New(payload T) NewJob {
	job := NewJob{Kind: k.Name, Version: k.Version, Queue: k.Queue, Payload: payload}
	if k.Key != nil {
		job.Key = k.Key(payload)
	}
	if k.Destination != nil {
		job.Destination = k.Destination(payload)
	}
	return job
}

// Handle registers fn as the handler of kind k. Registration errors are kept and reported by [New], all at once.
//
// fn gets a context that ends at the attempt's timeout, at the job's deadline, when the claim (or an unkeyed job's lease) is lost, or
// when the worker's stop grace is over; context.Cause tells which. Answer nil for success, a plain error to fail the attempt, or one of
// [RetryAfter], [Snooze], [Cancel] and [Unavailable].
func Handle[T any](r *Registry, k Kind[T], fn func(ctx context.Context, payload T) error, mw ...func(next Handler) Handler) {
	r.add(registration{
		name:    k.Name,
		aliases: k.Aliases,
		version: k.Version,
		config:  k.Config,
		decode:  decoder(k),
		handler: func(ctx context.Context, job *Job) error {
			payload, _ := job.decoded.(T) // null leaves a T that is an interface nil, which is no T to an assertion
			return fn(ctx, payload)
		},
		mw:      mw,
		missing: fn == nil,
	})
}
