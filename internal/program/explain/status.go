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

// standing is where a job is, and why in one sentence.
type standing struct {
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
	stateUnseen          jobState = "unseen"          // a delivery of an event, of which there is no job
	stateInLine          jobState = "in_line"         // behind others in the line of a webhook endpoint that asks for order
	stateEndpointClosed  jobState = "endpoint_closed" // its webhook endpoint is paused, disabled, unknown, or cannot be used
)

// stand judges a job: what is sure comes before what is likely.
func (ev *evidence) stand(s *subject) standing {
	for _, look := range []func(*subject) (standing, bool){
		ev.running, ev.completed, ev.buried, ev.inQueue, ev.gone,
	} {
		if d, ok := look(s); ok {
			return ev.withTarget(s, d)
		}
	}
	return standing{stateUnfinished, "is not finished; more is not known"}
}

// withTarget adds what the endpoint of a delivery has to say to what says nothing of it.
func (ev *evidence) withTarget(s *subject, d standing) standing {
	switch d.state {
	case stateReady, stateScheduled, stateBetween:
		if closed := ev.closed(s); closed != "" {
			d.why += "; " + closed
		}
	case stateDead:
		if t := ev.targetOf(s); t != nil && ev.closed(s) != "" {
			d.why += fmt.Sprintf("; its endpoint %s: see to that before you replay it", t)
		}
	}
	return d
}

func (ev *evidence) running(s *subject) (standing, bool) {
	c := s.claim
	if c == nil || c.State != idempotency.StatusAcquired || c.Job != s.job || !c.Until.After(ev.claimsNow) {
		return standing{}, false
	}
	left := span(c.Until.Sub(ev.claimsNow))
	if ev.hasBoard && !ev.lives(c.Owner) { // it has died, or is a program that does not report
		return standing{stateRunning, fmt.Sprintf("is running, attempt %s, at %s, which reports nothing: if that has died, another worker gets the job when its claim runs out, in %s",
			ev.attemptOf(s, c.Attempt), c.Owner, left)}, true
	}
	return standing{stateRunning, fmt.Sprintf("is running: attempt %s, at %s, whose claim lasts %s more unless it is extended",
		ev.attemptOf(s, c.Attempt), c.Owner, left)}, true
}

// lives reports whether a worker of that name is live.
func (ev *evidence) lives(owner string) bool {
	return slices.ContainsFunc(ev.reports, func(r fleet.Report) bool { return r.Owner == owner })
}

func (ev *evidence) completed(s *subject) (standing, bool) {
	c := s.claim
	if c == nil || c.State != idempotency.StatusCompleted {
		return standing{}, false
	}
	if e := s.letter(); e != nil && e.State == dlq.StateDead && e.Cause == dlq.CauseMismatch && c.Job != s.job {
		return standing{}, false // the key's work is done, this job's is not
	}
	by := ""
	if c.Job != s.job {
		by = fmt.Sprintf(" by job %s, which has the same key", c.Job)
	} else if c.Run > 0 {
		by = fmt.Sprintf(" by run %d, a replay", c.Run)
	}
	why := fmt.Sprintf("is done: it was completed%s, and that is remembered until %s", by, cli.Time(c.Until))
	if len(s.places) > 0 {
		why += "; the message that is left in the queue is acked without running"
	}
	return standing{stateCompleted, why}, true
}

// buried judges by the dead letter of the newest run.
func (ev *evidence) buried(s *subject) (standing, bool) {
	e := s.letter()
	switch {
	case e == nil && s.ledger() != nil && s.ledger().Closed:
		where := "its dead letter is not in the store any more"
		if !ev.hasLetters {
			where = "its dead letter is in the broker's own dead-letter queue"
		}
		return standing{stateClosed, fmt.Sprintf("was given up after %s; %s", count(s.ledger().Attempt, "attempt"), where)}, true
	case e == nil:
		return standing{}, false
	case e.State == dlq.StateDead:
		why := fmt.Sprintf("is a dead letter since %s, after %s (%s): %s", cli.Time(e.StoredAt), count(e.AttemptCount, "attempt"), e.Cause, headline(e.Error))
		if p := s.place(); p != nil && e.Group != "" {
			why += "; it keeps its place at the head of its group until it is replayed or purged"
		}
		return standing{stateDead, why}, true
	case e.State == dlq.StateHeld && s.place() == nil:
		return ev.heldBack(s, e), true
	case e.State == dlq.StateReplayed && s.place() == nil:
		return standing{stateReplayed, fmt.Sprintf("died and was replayed at %s as run %d, of which nothing more is known", cli.Time(e.ChangedAt), e.Run+1)}, true
	case e.State == dlq.StatePurged:
		return standing{statePurged, "died and was purged at " + cli.Time(e.ChangedAt)}, true
	}
	return standing{}, false
}

func (ev *evidence) heldBack(s *subject, e *dlq.Entry) standing {
	others := 0
	for _, h := range ev.held {
		if h.Destination == e.Destination {
			others = h.Count - 1
		}
	}
	held := fmt.Sprintf("is held since %s, with %s", cli.Time(e.StoredAt), count(others, "other"))
	if closed := ev.closed(s); closed != "" {
		return standing{stateHeld, held + ": " + closed}
	}
	why := fmt.Sprintf("%s, until its destination %s recovers", held, e.Destination)
	switch v := fleet.Look(ev.reports, s.destination); {
	case v.Refusing > 0:
		why += ": " + ev.refusal(v)
	case s.kind == webhook.KindDeliver && ev.targetOf(s) == nil: // its endpoint may be paused, which workers report a moment later
	case len(ev.reports) > 0:
		why += ", which it has: workers release its jobs now"
	case ev.hasBoard:
		why += ", and no worker is live that would release it"
	}
	return standing{stateHeld, why}
}

// attemptOf is the number of an attempt, and of how many where that is known.
func (ev *evidence) attemptOf(s *subject, n int) string {
	if most := ev.mostAttempts(s); most > 0 {
		return fmt.Sprintf("%d of %d", n, most)
	}
	return fmt.Sprint(n)
}
