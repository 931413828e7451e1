package explain

import (
	"fmt"
	"slices"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/webhook"
)

// status is where a job is, and why in one sentence.
type status struct {
	state jobState
	why   string
}

// jobState is the class of a standing.
type jobState string

// The states.
const (
	stateRunning         jobState = "running"          // a worker has its claim
	stateTaken           jobState = "taken"            // a worker has its message and has not claimed it
	stateReady           jobState = "ready"            // it is the queue's turn
	stateScheduled       jobState = "scheduled"        // not due yet, and not tried yet
	stateBetween         jobState = "between_attempts" // after a failed attempt
	stateDeferred        jobState = "deferred"         // put back, for a reason that is not known
	stateDestinationOpen jobState = "destination_open" // its destination refuses jobs
	statePoolFull        jobState = "pool_full"
	stateKeyBusy         jobState = "key_busy" // another job runs under its key
	stateUnknownKind     jobState = "unknown_kind"
	stateWorkerLost      jobState = "worker_lost" // its claim ran out
	stateHeld            jobState = "held"
	stateDead            jobState = "dead"
	stateReplayed        jobState = "replayed"
	statePurged          jobState = "purged"
	stateCompleted       jobState = "completed"
	stateClosed          jobState = "closed" // given up, with no dead letter left
	stateGone            jobState = "gone"   // unfinished, and its message is in no queue
	stateUnfinished      jobState = "unfinished"
	stateUnseen          jobState = "unseen"           // a delivery of an event, of which there is no job
	stateQueued          jobState = "in_ordered_queue" // behind others in the ordered queue of a webhook endpoint
	stateEndpointClosed  jobState = "endpoint_closed"  // its webhook endpoint is paused, disabled, unknown, or cannot be used
)

// statusOf judges a job: what is sure comes before what is likely.
func (d *diagnosis) statusOf(j *job) status {
	for _, look := range []func(*job) (status, bool){
		d.running, d.completed, d.buried, d.unfinished, d.gone,
	} {
		if st, ok := look(j); ok {
			return d.withEndpoint(j, st)
		}
	}
	return status{stateUnfinished, "is not finished; more is not known"}
}

// withEndpoint adds what the endpoint of a delivery has to say to what says nothing of it.
func (d *diagnosis) withEndpoint(j *job, st status) status {
	switch st.state {
	case stateReady, stateScheduled, stateBetween:
		if closed := d.closed(j); closed != "" {
			st.why += "; " + closed
		}
	case stateDead:
		if t := d.endpointOf(j); t != nil && d.closed(j) != "" {
			st.why += fmt.Sprintf("; its endpoint %s: see to that before you replay it", t)
		}
	}
	return st
}

func (d *diagnosis) running(j *job) (status, bool) {
	c := j.claim
	if c == nil || c.State != idempotency.StatusAcquired || c.Job != j.id || !c.Until.After(d.claimsNow) {
		return status{}, false
	}
	left := span(c.Until.Sub(d.claimsNow))
	if d.hasStatuses && !d.lives(c.Owner) { // it has died, or is a program that does not report
		return status{stateRunning, fmt.Sprintf("is running, attempt %s, at %s, which reports nothing: if that has died, another worker gets the job when its claim runs out, in %s",
			d.attemptOf(j, c.Attempt), c.Owner, left)}, true
	}
	return status{stateRunning, fmt.Sprintf("is running: attempt %s, at %s, whose claim lasts %s more unless it is extended",
		d.attemptOf(j, c.Attempt), c.Owner, left)}, true
}

// lives reports whether a worker of that name is live.
func (d *diagnosis) lives(owner string) bool {
	return slices.ContainsFunc(d.reports, func(r fleet.Report) bool { return r.Owner == owner })
}

func (d *diagnosis) completed(j *job) (status, bool) {
	c := j.claim
	if c == nil || c.State != idempotency.StatusCompleted {
		return status{}, false
	}
	if e := j.letter(); e != nil && e.State == dlq.StateDead && e.Cause == dlq.CauseMismatch && c.Job != j.id {
		return status{}, false // the key's work is done, this job's is not
	}
	by := ""
	if c.Job != j.id {
		by = fmt.Sprintf(" by job %s, which has the same key", c.Job)
	} else if c.Run > 0 {
		by = fmt.Sprintf(" by run %d, a replay", c.Run)
	}
	why := fmt.Sprintf("is done: it was completed%s, and that is remembered until %s", by, cli.Time(c.Until))
	if len(j.places) > 0 {
		why += "; the message that is left in the queue is acked without running"
	}
	return status{stateCompleted, why}, true
}

// buried judges by the dead letter of the newest run.
func (d *diagnosis) buried(j *job) (status, bool) {
	e := j.letter()
	switch {
	case e == nil && j.ledger() != nil && j.ledger().Closed:
		where := "its dead letter is not in the store any more"
		if !d.hasLetters {
			where = "its dead letter is in the broker's own dead-letter queue"
		}
		return status{stateClosed, fmt.Sprintf("was given up after %s; %s", count(j.ledger().Attempt, "attempt"), where)}, true
	case e == nil:
		return status{}, false
	case e.State == dlq.StateDead:
		why := fmt.Sprintf("is a dead letter since %s, after %s (%s): %s", cli.Time(e.StoredAt), count(e.AttemptCount, "attempt"), e.Cause, headline(e.Error))
		if p := j.place(); p != nil && e.Group != "" {
			why += "; it keeps its place at the head of its group until it is replayed or purged"
		}
		return status{stateDead, why}, true
	case e.State == dlq.StateHeld && j.place() == nil:
		return d.heldJob(j, e), true
	case e.State == dlq.StateReplayed && j.place() == nil:
		return status{stateReplayed, fmt.Sprintf("died and was replayed at %s as run %d, of which nothing more is known", cli.Time(e.ChangedAt), e.Run+1)}, true
	case e.State == dlq.StatePurged:
		return status{statePurged, "died and was purged at " + cli.Time(e.ChangedAt)}, true
	}
	return status{}, false
}

func (d *diagnosis) heldJob(j *job, e *dlq.Entry) status {
	others := 0
	for _, h := range d.held {
		if h.Destination == e.Destination {
			others = h.Count - 1
		}
	}
	held := fmt.Sprintf("is held since %s, with %s", cli.Time(e.StoredAt), count(others, "other"))
	if closed := d.closed(j); closed != "" {
		return status{stateHeld, held + ": " + closed}
	}
	why := fmt.Sprintf("%s, until its destination %s recovers", held, e.Destination)
	switch v := fleet.Look(d.reports, j.destination); {
	case v.Refusing > 0:
		why += ": " + d.refusal(v)
	case j.kind == webhook.KindDeliver && d.endpointOf(j) == nil: // its endpoint may be paused, which workers report a moment later
	case len(d.reports) > 0:
		why += ", which it has: workers release its jobs now"
	case d.hasStatuses:
		why += ", and no worker is live that would release it"
	}
	return status{stateHeld, why}
}

// attemptOf is the number of an attempt, and of how many where that is known.
func (d *diagnosis) attemptOf(j *job, n int) string {
	if most := d.mostAttempts(j); most > 0 {
		return fmt.Sprintf("%d of %d", n, most)
	}
	return fmt.Sprint(n)
}
