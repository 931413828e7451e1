package worker

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools"
)

// Observer is told what happens. Metrics, logs, traces and dashboards hang on this one port.
//
// Observe is called from many goroutines at once and must be quick: it runs on the job's path. It must not keep the event, nor call
// back into the worker. A panic in it is caught and logged.
type Observer interface {
	Observe(event Event)
}

// Event is one of the event types of this package, always by pointer. New types may come; ignore what you do not know.
type Event interface{ event() }

// Observers joins several observers into one that calls each in order. Nil entries are left out.
func Observers(list ...Observer) Observer {
	var joined observers
	for _, o := range list {
		if o != nil {
			joined = append(joined, o)
		}
	}
	return joined
}

type observers []Observer

func (os observers) Observe(e Event) {
	for _, o := range os {
		o.Observe(e)
	}
}

// UnknownKind stands in events for every kind that no handler is registered for, so that labels stay bounded.
const UnknownKind = "other"

type (
	// Received tells of messages taken from a queue.
	Received struct {
		Queue string
		Count int
	}

	// Started tells that a handler is about to run.
	Started struct {
		Job  *Job
		Kind string
	}

	// Settled tells how one delivery ended. It is sent for every delivery, also for those that ran nothing.
	Settled struct {
		// Job is nil if the message could not be decoded.
		Job   *Job
		Queue string
		// Kind is the registered name, or UnknownKind.
		Kind       string
		Outcome    Outcome
		Settlement Settlement
		// Reason is why it was deferred.
		Reason Reason
		// Cause is set for dead letters and held jobs.
		Cause dlq.Cause
		// Delay is how long the message stays hidden.
		Delay time.Duration
		// Handle is how long the handler ran; zero if it did not.
		Handle time.Duration
		// Total is the time from receive to the end of settlement.
		Total time.Duration
		// Latency is the time from when the job was due to the end of a first, successful settlement; zero otherwise.
		Latency time.Duration
		// Err is the error that decided, nil on success.
		Err error
		// Result is what the completed run of a Duplicate left: a stored result, not a fresh one. Else nil.
		Result *idempotency.Result
		// ResultOmitted says that the handler's result was too large to keep.
		ResultOmitted bool
		// SettleErr is set if the broker did not take the settlement, for example queue.ErrLeaseLost.
		SettleErr error
	}

	// LeaseLost tells that the broker took a message back while it was being worked on.
	LeaseLost struct {
		Job  *Job
		Kind string
	}

	// ClaimLost tells that another worker took over a job's key.
	ClaimLost struct {
		Job  *Job
		Kind string
	}

	// Abandoned tells that a handler ignored its cancelled context and was given up; it still holds its slot.
	Abandoned struct {
		Job  *Job
		Kind string
		// Returned is set in a second event, when the handler has come back after all.
		Returned bool
	}

	// BreakerChanged tells of a breaker's transition.
	BreakerChanged struct{ pools.Transition }

	// Paused tells that leasing stopped or resumed because a store or broker is unavailable.
	Paused struct {
		// What is "store" or the queue's name.
		What string
		// Err is why; nil when work resumed.
		Err error
	}

	// Released tells that held jobs of a destination were published again.
	Released struct {
		Destination string
		Count       int
		// Probe says that they were sent to find out whether the destination has recovered.
		Probe bool
	}

	// CleanUp tells that expired records were removed, or why they could not be.
	CleanUp struct {
		// What is "idempotency" or "dlq".
		What    string
		Removed int
		Err     error
	}
)

func (*Received) event()       {}
func (*Started) event()        {}
func (*Settled) event()        {}
func (*LeaseLost) event()      {}
func (*ClaimLost) event()      {}
func (*Abandoned) event()      {}
func (*BreakerChanged) event() {}
func (*Paused) event()         {}
func (*Released) event()       {}
func (*CleanUp) event()        {}

// guarded keeps an observer's panic away from the job that it observes.
type guarded struct {
	next   Observer
	logger *slog.Logger
}

func (g guarded) Observe(e Event) {
	defer func() {
		if p := recover(); p != nil {
			// Only the event's type: a job's payload and headers do not belong in a log.
			g.logger.Error("observer panicked", "event", fmt.Sprintf("%T", e), "panic", p)
		}
	}()
	g.next.Observe(e)
}
