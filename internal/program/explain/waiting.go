package explain

import (
	"fmt"
	"strings"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/queue/inspect"
)

// unfinished judges a job whose message is known, or that waits for its next try.
func (d *diagnosis) unfinished(j *job) (status, bool) {
	p := j.place()
	if st, ok := d.keyBusy(j); ok && (p != nil || !d.finds) {
		return st, true
	}
	switch {
	case p == nil:
		if d.finds && d.complete {
			return status{}, false
		}
		return d.waitingUnseen(j)
	case p.State == inspect.StateLeased:
		return d.taken(j, p), true
	case p.State == inspect.StateReady:
		return d.ready(j, p), true
	}
	return d.delayed(j, p), true
}

// keyBusy: another job of the same key is being run.
func (d *diagnosis) keyBusy(j *job) (status, bool) {
	c := j.claim
	if c == nil || c.State != idempotency.StatusAcquired || c.Job == j.id || !c.Until.After(d.claimsNow) {
		return status{}, false
	}
	return status{stateKeyBusy, fmt.Sprintf("waits for its key, which job %s is running under at %s; its claim lasts %s more unless it is extended",
		c.Job, c.Owner, span(c.Until.Sub(d.claimsNow)))}, true
}

func (d *diagnosis) taken(j *job, p *inspect.Location) status {
	left := span(p.Due.Sub(d.brokerNow))
	k, known := d.kindOf(j)
	if v := d.poolOf(j); known && k.Keyed && v != nil && v.Waiting > 0 {
		return status{statePoolFull, fmt.Sprintf("is at a worker and waits there for a place: %s; its lease lasts %s more unless it is extended", v, left)}
	}
	if known && !k.Keyed {
		return status{stateRunning, fmt.Sprintf("is running, attempt %s: a worker has its message, for %s more unless the lease is extended",
			d.attemptOf(j, p.Envelope.AttemptBase+p.Attempts), left)}
	}
	if c := j.claim; c != nil && c.State == idempotency.StatusAcquired && c.Job == j.id {
		return status{stateWorkerLost, fmt.Sprintf("was running at %s, whose claim ran out %s ago; its message is leased for %s more, then another worker gets it",
			c.Owner, span(d.claimsNow.Sub(c.Until)), left)}
	}
	return status{stateTaken, fmt.Sprintf("is at a worker, which has not claimed it yet; its lease lasts %s more unless it is extended", left)}
}

func (d *diagnosis) ready(j *job, p *inspect.Location) status {
	line := "is next in queue " + p.Queue
	switch {
	case !p.Ahead.Known:
		line = "waits for its turn in queue " + p.Queue + " behind more than 100000 others"
	case p.Ahead.N > 0:
		line = fmt.Sprintf("waits for its turn in queue %s behind %s", p.Queue, count(int(p.Ahead.N), "other"))
	}
	if c := j.claim; c != nil && c.State == idempotency.StatusAcquired && c.Job == j.id {
		line += fmt.Sprintf(", since %s died or lost it: its claim ran out %s ago", c.Owner, span(d.claimsNow.Sub(c.Until)))
	}
	if !d.hasStatuses {
		return status{stateReady, line}
	}
	workers := d.workersOf(p.Queue)
	var notReady []string
	for _, w := range workers {
		if w.NotReady != "" {
			notReady = append(notReady, w.Owner+": "+w.NotReady)
		}
	}
	switch {
	case len(workers) == 0 && len(d.reports) == 0:
		line += ", and no worker is live"
	case len(workers) == 0:
		line += fmt.Sprintf(", which none of the %s works", count(len(d.reports), "live worker"))
	case len(notReady) == len(workers):
		line += ", whose workers take no jobs (" + strings.Join(notReady, "; ") + ")"
	}
	return status{stateReady, line}
}

// delayed: the likeliest reason comes first. Ledger and envelope know; what the fleet says now is what it said a moment ago.
func (d *diagnosis) delayed(j *job, p *inspect.Location) status {
	in := span(p.Due.Sub(d.brokerNow))
	if st, ok := d.between(j); ok {
		return st
	}
	if nb := p.Envelope.NotBefore; nb.After(d.brokerNow) {
		return status{stateScheduled, fmt.Sprintf("is scheduled for %s, in %s", cli.Time(nb), span(nb.Sub(d.brokerNow)))}
	}
	if p.Deliveries == 0 {
		return status{stateScheduled, fmt.Sprintf("is scheduled for %s, in %s", cli.Time(p.Due), in)}
	}
	if st, ok := d.refused(j); ok {
		st.why += "; it is looked at again in " + in
		return st
	}
	if v := d.poolOf(j); v != nil && v.Full > 0 {
		return status{statePoolFull, fmt.Sprintf("was put back, likely for want of a place: %s; it comes back in %s", v, in)}
	}
	if _, known := d.kindOf(j); !known && len(d.reports) > 0 && j.kind != "" {
		return status{stateUnknownKind, fmt.Sprintf("waits for a worker that knows its kind %s: none of the %s does; it is looked at again in %s",
			j.kind, count(len(d.reports), "live worker"), in)}
	}
	return status{stateDeferred, fmt.Sprintf("was put back, delivered %s so far, and comes back in %s", count(p.Deliveries, "time"), in)}
}

// between: a failed attempt, and the next one not due yet.
func (d *diagnosis) between(j *job) (status, bool) {
	l := j.ledger()
	if l == nil || l.State != 0 || l.Closed || len(l.History) == 0 || !l.Until.After(d.claimsNow) {
		return status{}, false
	}
	last := l.History[len(l.History)-1]
	why := fmt.Sprintf("waits for attempt %s, due at %s, in %s, since attempt %d failed: %s", d.attemptOf(j, l.Attempt+1), cli.Time(l.Until),
		span(l.Until.Sub(d.claimsNow)), last.Number, headline(last.Error))
	if v := fleet.Look(d.reports, j.destination); v.Refusing > 0 && d.closed(j) == "" {
		why += "; its destination " + j.destination + " refuses jobs as well: " + d.refusal(v)
	}
	return status{stateBetween, why}, true
}

// refused: the destination refuses jobs at some worker now.
func (d *diagnosis) refused(j *job) (status, bool) {
	if closed := d.closed(j); closed != "" {
		return status{stateEndpointClosed, "waits: " + closed}, true
	}
	v := fleet.Look(d.reports, j.destination)
	if j.destination == "" || v.Refusing == 0 {
		return status{}, false
	}
	return status{stateDestinationOpen, fmt.Sprintf("waits for its destination %s: %s", j.destination, d.refusal(v))}, true
}

// refusal says why a destination refuses jobs.
func (d *diagnosis) refusal(v fleet.View) string {
	at := fmt.Sprintf("at %d of %s", v.Refusing, count(v.Workers, "worker"))
	next := ""
	if wait := v.Next.Sub(v.Now); !v.Next.IsZero() && wait > 0 {
		next = ", next try in " + span(wait)
	}
	switch w := v.Worst; {
	case w.Override == "forced_open" && d.endpoints[w.Name] != nil:
		return "its endpoint is enabled, and workers hear of it within seconds"
	case w.Override == "forced_open":
		return "an operator has forced its breaker open " + at
	case w.State == "open", w.State == "half_open":
		return fmt.Sprintf("its breaker is %s %s, since %s (%s)%s", strings.ReplaceAll(w.State, "_", "-"), at, cli.Time(v.Since), span(v.Now.Sub(v.Since)),
			strings.Replace(next, "try", "probe", 1))
	case w.Reason == "throttled":
		return "it is throttled (Retry-After) " + at + next
	default:
		return fmt.Sprintf("it is refused %s (%s)%s", at, w.Reason, next)
	}
}

// waitingUnseen judges an unfinished job by its ledger alone, where the broker cannot tell or has too many messages.
func (d *diagnosis) waitingUnseen(j *job) (status, bool) {
	if st, ok := d.between(j); ok {
		return st, true
	}
	l := j.ledger()
	if l == nil {
		return d.refused(j)
	}
	if c := j.claim; c != nil && c.Job == j.id && c.State == idempotency.StatusAcquired {
		return status{stateWorkerLost, fmt.Sprintf("was running at %s, whose claim ran out %s ago: that worker has died, or lost its store; the broker delivers it again when the lease is over",
			c.Owner, span(d.claimsNow.Sub(c.Until)))}, true
	}
	if st, ok := d.refused(j); ok {
		return st, true
	}
	return status{stateUnfinished, fmt.Sprintf("waits for attempt %s in the broker, which cannot tell where", d.attemptOf(j, l.Attempt+1))}, true
}

// gone: unfinished by its ledger, and a whole search found no message.
func (d *diagnosis) gone(j *job) (status, bool) {
	if !d.finds || !d.complete || j.ledger() == nil {
		return status{}, false
	}
	return status{stateGone, fmt.Sprintf("was not finished after %s, and its message is in no queue: nothing is going to run it. Enqueue it again under the same id",
		count(j.ledger().Attempt, "attempt"))}, true
}
