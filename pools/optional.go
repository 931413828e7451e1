package pools

import (
	"math"

	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// optional is what only some destinations have, so that the others cost no more.
type optional struct {
	limit adaptive.LimitState
	peer  *peer               // nil unless the destination is shared and others speak of it
	took  *adaptive.Durations // nil unless the timeout adapts
	wait  *waiting            // nil unless calls have to wait
}

// waiting is what a destination keeps while calls to it have to wait.
type waiting struct {
	throttledUntil int64   // as its Retry-After asked
	backlog        backlog // of deferred jobs
	blind          int64   // when the first job was deferred before any call was answered
}

// option makes it where there is none.
func (d *destination) option() *optional {
	if d.opt == nil {
		d.opt = &optional{}
	}
	return d.opt
}

// waiting makes it where there is none.
func (d *destination) waiting() *waiting {
	o := d.option()
	if o.wait == nil {
		o.wait = &waiting{throttledUntil: stamp.Never, backlog: noBacklog, blind: stamp.Never}
	}
	return o.wait
}

// waits returns it; nil if there is none.
func (d *destination) waits() *waiting {
	if d.opt == nil {
		return nil
	}
	return d.opt.wait
}

// throttledFor is how long the destination is throttled; 0 if it is not.
func (d *destination) throttledFor(now int64) int64 {
	if w := d.waits(); w != nil && w.throttledUntil > now {
		return w.throttledUntil - now
	}
	return 0
}

// settled drops what is over, and reports whether nothing is left to wait for.
func (d *destination) settled(now int64) bool {
	w := d.waits()
	if w != nil && (w.throttledUntil > now || w.backlog.end() > now) || !d.circuit.Settle(&d.s.breaker, now) {
		return false
	}
	if w != nil {
		d.opt.wait = nil
		d.slim()
	}
	return true
}

// limit is how many calls may run at once; 0 means any number.
func (d *destination) limit() uint32 {
	if d.opt == nil || d.s.limit == nil {
		return d.s.concurrency
	}
	return d.opt.limit.Limit(d.s.limit)
}

// adapt records a call that ends in the adaptive limit, if there is one.
func (d *destination) adapt(start, now int64, o breaker.Outcome) {
	r := d.s.limit
	if r == nil || d.opt == nil && o == breaker.OutcomeSuccess && !r.Slows() { // it stands at the highest, and stays there
		return
	}
	l := d.limitState()
	l.Record(r, start, now, o, d.out)
	d.keepLimit(l)
}

// throttled lowers it: the destination asked for fewer calls.
func (d *destination) throttled(now int64) {
	if r := d.s.limit; r != nil {
		l := d.limitState()
		l.Lower(r, now, now)
		d.keepLimit(l)
	}
}

func (d *destination) limitState() adaptive.LimitState {
	if d.opt == nil {
		return adaptive.LimitState{}
	}
	return d.opt.limit
}

// keepLimit keeps the state of a limit that is lowered, and forgets one that is not.
func (d *destination) keepLimit(l adaptive.LimitState) {
	if l.Lowered() || d.opt != nil {
		d.option().limit = l
		d.slim()
	}
}

// timed records in the adaptive timeout, if there is one, how long a call took.
func (d *destination) timed(took int64, o breaker.Outcome) {
	if d.s.timeout == nil {
		return
	}
	if d.opt == nil || d.opt.took == nil {
		if o != breaker.OutcomeSuccess && o != breaker.OutcomeSlow {
			return
		}
		d.option().took = &adaptive.Durations{}
	}
	d.opt.took.Record(took, o)
}

// timeout is how long a call may take; 0 if the destination does not say.
func (d *destination) timeout() int64 {
	if d.s.timeout == nil {
		return 0
	}
	var took *adaptive.Durations
	if d.opt != nil {
		took = d.opt.took
	}
	if t := d.s.timeout.Timeout(took); t < math.MaxInt64 {
		return t
	}
	return 0
}

// slim drops what is not used any more.
func (d *destination) slim() {
	if d.opt != nil && *d.opt == (optional{}) {
		d.opt = nil
	}
}
