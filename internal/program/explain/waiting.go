package explain

import (
	"fmt"
	"strings"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/queue"
)

// inQueue judges a job whose message is known, or that waits for its next try.
func (ev *evidence) inQueue(s *subject) (standing, bool) {
	p := s.place()
	if d, ok := ev.keyBusy(s); ok && (p != nil || !ev.finds) {
		return d, true
	}
	switch {
	case p == nil:
		if ev.finds && ev.complete {
			return standing{}, false
		}
		return ev.waitingUnseen(s)
	case p.State == queue.PlaceStateLeased:
		return ev.taken(s, p), true
	case p.State == queue.PlaceStateReady:
		return ev.ready(s, p), true
	}
	return ev.delayed(s, p), true
}

// keyBusy: another job of the same key is being run.
func (ev *evidence) keyBusy(s *subject) (standing, bool) {
	c := s.claim
	if c == nil || c.State != idempotency.StatusAcquired || c.Job == s.job || !c.Until.After(ev.claimsNow) {
		return standing{}, false
	}
	return standing{stateKeyBusy, fmt.Sprintf("waits for its key, which job %s is running under at %s; its claim lasts %s more unless it is extended",
		c.Job, c.Owner, span(c.Until.Sub(ev.claimsNow)))}, true
}

func (ev *evidence) taken(s *subject, p *queue.Place) standing {
	left := span(p.Due.Sub(ev.brokerNow))
	k, known := ev.kindOf(s)
	if v := ev.poolOf(s); known && k.Keyed && v != nil && v.Waiting > 0 {
		return standing{statePoolFull, fmt.Sprintf("is at a worker and waits there for a place: %s; its lease lasts %s more unless it is extended", v, left)}
	}
	if known && !k.Keyed {
		return standing{stateRunning, fmt.Sprintf("is running, attempt %s: a worker has its message, for %s more unless the lease is extended",
			ev.attemptOf(s, p.Envelope.AttemptBase+p.Attempts), left)}
	}
	if c := s.claim; c != nil && c.State == idempotency.StatusAcquired && c.Job == s.job {
		return standing{stateWorkerLost, fmt.Sprintf("was running at %s, whose claim ran out %s ago; its message is leased for %s more, then another worker gets it",
			c.Owner, span(ev.claimsNow.Sub(c.Until)), left)}
	}
	return standing{stateTaken, fmt.Sprintf("is at a worker, which has not claimed it yet; its lease lasts %s more unless it is extended", left)}
}

func (ev *evidence) ready(s *subject, p *queue.Place) standing {
	line := "is next in queue " + p.Queue
	switch {
	case !p.Ahead.Known:
		line = "waits for its turn in queue " + p.Queue + " behind more than 100000 others"
	case p.Ahead.N > 0:
		line = fmt.Sprintf("waits for its turn in queue %s behind %s", p.Queue, count(int(p.Ahead.N), "other"))
	}
	if c := s.claim; c != nil && c.State == idempotency.StatusAcquired && c.Job == s.job {
		line += fmt.Sprintf(", since %s died or lost it: its claim ran out %s ago", c.Owner, span(ev.claimsNow.Sub(c.Until)))
	}
	if !ev.hasBoard {
		return standing{stateReady, line}
	}
	workers := ev.workersOf(p.Queue)
	var notReady []string
	for _, w := range workers {
		if w.NotReady != "" {
			notReady = append(notReady, w.Owner+": "+w.NotReady)
		}
	}
	switch {
	case len(workers) == 0 && len(ev.reports) == 0:
		line += ", and no worker is live"
	case len(workers) == 0:
		line += fmt.Sprintf(", which none of the %s works", count(len(ev.reports), "live worker"))
	case len(notReady) == len(workers):
		line += ", whose workers take no jobs (" + strings.Join(notReady, "; ") + ")"
	}
	return standing{stateReady, line}
}

// delayed: the likeliest reason comes first. Ledger and envelope know; what the fleet says now is what it said a moment ago.
func (ev *evidence) delayed(s *subject, p *queue.Place) standing {
	in := span(p.Due.Sub(ev.brokerNow))
	if d, ok := ev.between(s); ok {
		return d
	}
	if nb := p.Envelope.NotBefore; nb.After(ev.brokerNow) {
		return standing{stateScheduled, fmt.Sprintf("is scheduled for %s, in %s", cli.Time(nb), span(nb.Sub(ev.brokerNow)))}
	}
	if p.Deliveries == 0 {
		return standing{stateScheduled, fmt.Sprintf("is scheduled for %s, in %s", cli.Time(p.Due), in)}
	}
	if d, ok := ev.refused(s); ok {
		d.why += "; it is looked at again in " + in
		return d
	}
	if v := ev.poolOf(s); v != nil && v.Full > 0 {
		return standing{statePoolFull, fmt.Sprintf("was put back, likely for want of a place: %s; it comes back in %s", v, in)}
	}
	if _, known := ev.kindOf(s); !known && len(ev.reports) > 0 && s.kind != "" {
		return standing{stateUnknownKind, fmt.Sprintf("waits for a worker that knows its kind %s: none of the %s does; it is looked at again in %s",
			s.kind, count(len(ev.reports), "live worker"), in)}
	}
	return standing{stateDeferred, fmt.Sprintf("was put back, delivered %s so far, and comes back in %s", count(p.Deliveries, "time"), in)}
}

// between: a failed attempt, and the next one not due yet.
func (ev *evidence) between(s *subject) (standing, bool) {
	l := s.ledger()
	if l == nil || l.State != 0 || l.Closed || len(l.History) == 0 || !l.Until.After(ev.claimsNow) {
		return standing{}, false
	}
	last := l.History[len(l.History)-1]
	why := fmt.Sprintf("waits for attempt %s, due at %s, in %s, since attempt %d failed: %s", ev.attemptOf(s, l.Attempt+1), cli.Time(l.Until),
		span(l.Until.Sub(ev.claimsNow)), last.Number, headline(last.Error))
	if v := fleet.Look(ev.reports, s.destination); v.Refusing > 0 && ev.closed(s) == "" {
		why += "; its destination " + s.destination + " refuses jobs as well: " + ev.refusal(v)
	}
	return standing{stateBetween, why}, true
}

// refused: the destination refuses jobs at some worker now.
func (ev *evidence) refused(s *subject) (standing, bool) {
	if closed := ev.closed(s); closed != "" {
		return standing{stateEndpointClosed, "waits: " + closed}, true
	}
	v := fleet.Look(ev.reports, s.destination)
	if s.destination == "" || v.Refusing == 0 {
		return standing{}, false
	}
	return standing{stateDestinationOpen, fmt.Sprintf("waits for its destination %s: %s", s.destination, ev.refusal(v))}, true
}

// refusal says why a destination refuses jobs.
func (ev *evidence) refusal(v fleet.View) string {
	at := fmt.Sprintf("at %d of %s", v.Refusing, count(v.Workers, "worker"))
	next := ""
	if wait := v.Next.Sub(v.Now); !v.Next.IsZero() && wait > 0 {
		next = ", next try in " + span(wait)
	}
	switch d := v.Worst; {
	case d.Override == "forced_open" && ev.targets[d.Name] != nil:
		return "its endpoint is enabled, and workers hear of it within seconds"
	case d.Override == "forced_open":
		return "an operator has forced its breaker open " + at
	case d.State == "open", d.State == "half_open":
		return fmt.Sprintf("its breaker is %s %s, since %s (%s)%s", strings.ReplaceAll(d.State, "_", "-"), at, cli.Time(v.Since), span(v.Now.Sub(v.Since)),
			strings.Replace(next, "try", "probe", 1))
	case d.Reason == "gated":
		return "it asked to be left alone " + at + next
	default:
		return fmt.Sprintf("it is refused %s (%s)%s", at, d.Reason, next)
	}
}

// waitingUnseen judges an unfinished job by its ledger alone, where the broker cannot tell or has too many messages.
func (ev *evidence) waitingUnseen(s *subject) (standing, bool) {
	if d, ok := ev.between(s); ok {
		return d, true
	}
	l := s.ledger()
	if l == nil {
		return ev.refused(s)
	}
	if c := s.claim; c != nil && c.Job == s.job && c.State == idempotency.StatusAcquired {
		return standing{stateWorkerLost, fmt.Sprintf("was running at %s, whose claim ran out %s ago: that worker has died, or lost its store; the broker delivers it again when the lease is over",
			c.Owner, span(ev.claimsNow.Sub(c.Until)))}, true
	}
	if d, ok := ev.refused(s); ok {
		return d, true
	}
	return standing{stateUnfinished, fmt.Sprintf("waits for attempt %s in the broker, which cannot tell where", ev.attemptOf(s, l.Attempt+1))}, true
}

// gone: unfinished by its ledger, and a whole search found no message.
func (ev *evidence) gone(s *subject) (standing, bool) {
	if !ev.finds || !ev.complete || s.ledger() == nil {
		return standing{}, false
	}
	return standing{stateGone, fmt.Sprintf("was not finished after %s, and its message is in no queue: nothing is going to run it. Enqueue it again under the same id",
		count(s.ledger().Attempt, "attempt"))}, true
}
