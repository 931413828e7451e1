package webhooks

import (
	"fmt"
	"time"

	"github.com/caisson-go/caisson/dlq"
)

// verdict is what became of a round.
type verdict struct {
	deliveries, calls, dead int
	// repeated are successes after the first of the same event at the same endpoint.
	repeated int
	faults   []string
}

func (v *verdict) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// missing are the deliveries of confirmed events that were neither taken nor given up.
func (r *killRound) missing(dead map[string]dlq.Entry) (missing []target) {
	r.receiver.mu.Lock()
	defer r.receiver.mu.Unlock()
	for _, e := range killEndpoints {
		for n := range r.events {
			to := target{e.id, n}
			if _, given := dead[to.job()]; e.wants(n) && !given && firstTaken(r.receiver.calls[to]) < 0 {
				missing = append(missing, to)
			}
		}
	}
	return missing
}

func (to target) job() string { return numbered(to.event).JobID(to.endpoint) }

// firstTaken is the place of the first success; negative if there is none.
func firstTaken(calls []call) int {
	for i, c := range calls {
		if c.took() {
			return i
		}
	}
	return -1
}

// check holds what the receiver saw against what is promised.
func (r *killRound) check(dead map[string]dlq.Entry) *verdict {
	v := &verdict{dead: len(dead)}
	for _, to := range r.missing(dead) {
		v.fault("lost: %s of %s is confirmed, and was neither taken nor given up", numbered(to.event).ID, to.endpoint)
	}
	r.receiver.mu.Lock()
	defer r.receiver.mu.Unlock()
	for _, bad := range r.receiver.bad {
		v.fault("bad: %s", bad)
	}
	for _, e := range killEndpoints {
		for n := range r.events {
			to := target{e.id, n}
			calls := r.receiver.calls[to]
			v.calls += len(calls)
			if len(calls) > 0 {
				v.deliveries++
			}
			if len(calls) > 0 && !e.wants(n) {
				v.fault("stray: %s does not want %s", e.id, numbered(n).ID)
			}
			if letter, given := dead[to.job()]; given && !hopeless(to) {
				v.fault("given up: %s of %s after %d calls and %d attempts: %s", numbered(n).ID, e.id, len(calls), letter.AttemptCount, letter.Error)
			}
			r.repeats(v, to, calls)
		}
		if e.ordered {
			r.order(v, e, dead)
		}
	}
	if most := len(r.kills) * killSlots; v.repeated > most {
		v.fault("repeated: %d, which is more than the %d slots that were killed", v.repeated, most)
	}
	for to := range r.receiver.calls {
		if to.event >= r.events {
			v.fault("order: event %d came, and only %d were published", to.event, r.events)
		}
	}
	return v
}

// repeats counts successes after the first. A worker must have been killed after it had made the call before, and before it could settle it.
func (r *killRound) repeats(v *verdict, to target, calls []call) {
	first := firstTaken(calls)
	if first < 0 {
		return
	}
	for i, c := range calls[first+1:] {
		if c.took() {
			v.repeated++
		}
		if before := calls[first+i]; !r.killedBetween(before.begun, c.begun) {
			v.fault("repeated: %s of %s was called again %s after a success, and nobody was killed", numbered(to.event).ID, to.endpoint, c.begun.Sub(before.ended))
		}
	}
}

func (r *killRound) killedBetween(from, to time.Time) bool {
	for _, k := range r.kills {
		if k.At.After(from) && k.At.Before(to) {
			return true
		}
	}
	return false
}

// order: an event is called for the first time once each one before it was taken for the first time, or had its last call before it was given up.
func (r *killRound) order(v *verdict, e killEndpoint, dead map[string]dlq.Entry) {
	var done time.Time // of all before
	var by int
	for n := range r.events {
		to := target{e.id, n}
		calls := r.receiver.calls[to]
		if len(calls) == 0 {
			continue
		}
		if calls[0].begun.Before(done) {
			v.fault("order: %s called %s, %s before %s was done", e.id, numbered(n).ID, done.Sub(calls[0].begun), numbered(by).ID)
		}
		end := calls[len(calls)-1].ended
		if first := firstTaken(calls); first >= 0 {
			end = calls[first].ended
		} else if _, given := dead[to.job()]; !given {
			continue // lost, which is found elsewhere
		}
		if end.After(done) {
			done, by = end, n
		}
	}
}
