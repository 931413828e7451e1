package worker

import (
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools/breaker"
)

// Observer receives a worker's events. Metrics, logs, traces and dashboards are observers.
//
// Observe is called from many goroutines at once, on the job's path: it must be fast. It must not retain the event or call back into the
// worker. A panic is recovered and logged.
type Observer interface {
	Observe(event Event)
}

// Event is a pointer to one of the event types of this package. Types may be added: ignore unknown ones.
type Event interface{ event() }

// unknownKind replaces the name of a kind without a handler in events, which keeps labels bounded.
const unknownKind = "other"

type (
	// Received reports messages taken from a queue.
	Received struct {
		Queue string
		Count int
	}

	// Started reports that a handler is about to run.
	Started struct {
		Job  *Job
		Kind string
	}

	// Settled reports the end of one delivery. Every delivery has one, even if nothing ran.
	Settled struct {
		// Job is nil if the message could not be decoded.
		Job   *Job
		Queue string
		// Kind is the registered name, or "other" for a kind without a handler.
		Kind       string
		Outcome    Outcome
		Settlement Settlement
		// Reason of a deferral: one of the Reason constants, or the text of a [pools.Reason]. Else empty.
		Reason string
		// Cause of a dead letter or hold. Else empty.
		Cause dlq.Cause
		// Delay until the message is visible again.
		Delay time.Duration
		// Handle is how long the handler ran. Zero if it did not.
		Handle time.Duration
		// Total is the time from receive to the end of settlement.
		Total time.Duration
		// Latency is the time from when the job was due to its success. Zero for other outcomes.
		Latency time.Duration
		// Err decided the outcome. Nil on success.
		Err error
		// Result is the stored result that a duplicate found. Else nil.
		Result *idempotency.Result
		// ResultOmitted reports that the handler's result was too large to keep.
		ResultOmitted bool
		// SettleErr is the error of the settlement itself, for example [ErrLeaseLost].
		SettleErr error
	}

	// Lost reports that a running handler lost its lease or its claim.
	Lost struct {
		Job  *Job
		Kind string
		// Err is [ErrLeaseLost] or [ErrClaimLost].
		Err error
	}

	// Abandoned reports that a handler ignored its cancelled context and was abandoned. It keeps its slot until it returns.
	Abandoned struct {
		Job  *Job
		Kind string
		// Returned marks the second event, sent when the handler has returned after all.
		Returned bool
	}

	// BreakerChanged reports a breaker's transition.
	BreakerChanged struct{ breaker.Transition }

	// Paused reports that leasing stopped or resumed because a store or broker is unavailable.
	Paused struct {
		// What is "store" or the queue's name.
		What string
		// Err is the reason. Nil when leasing resumes.
		Err error
	}

	// Released reports that held jobs of a destination were published again.
	Released struct {
		Destination string
		Count       int
		// Probe reports that they test whether the destination has recovered.
		Probe bool
	}

	// CleanUp reports that expired records were removed, or the error that prevented it.
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
func (*Lost) event()           {}
func (*Abandoned) event()      {}
func (*BreakerChanged) event() {}
func (*Paused) event()         {}
func (*Released) event()       {}
func (*CleanUp) event()        {}

// observe sends e to every observer.
func (w *Worker) observe(e Event) {
	for _, o := range w.cfg.Observers {
		w.observeOne(o, e)
	}
}

// observeOne recovers a panic of o, which must not fail the job.
func (w *Worker) observeOne(o Observer, e Event) {
	defer func() {
		if p := recover(); p != nil {
			// Only the event's type: a job's payload and headers do not belong in a log.
			w.cfg.Logger.Error("observer panicked", "event", fmt.Sprintf("%T", e), "panic", p)
		}
	}()
	o.Observe(e)
}
