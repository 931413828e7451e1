package pools

import "math"

// optional is what only destinations have that use it, so that the others cost no more.
type optional struct {
	aimd aimd
	peer *peer      // nil unless the destination is shared and others speak of it
	took *durations // nil unless the timeout adapts
}

// option makes it where there is none.
func (d *destination) option() *optional {
	if d.opt == nil {
		d.opt = &optional{}
	}
	return d.opt
}

// limit is how many calls may run at once; 0 means any number.
func (d *destination) limit() uint32 {
	if d.opt == nil || d.s.aimd == nil {
		return d.s.concurrency
	}
	return d.opt.aimd.limit(d.s.aimd)
}

// adapt tells the adaptive limit, if there is one, of a call that ends.
func (d *destination) adapt(start, now int64, o Outcome) {
	r := d.s.aimd
	if r == nil || d.opt == nil && o == OutcomeSuccess && r.slow == 0 { // it stands at the highest, and stays there
		return
	}
	a := aimd{}
	if d.opt != nil {
		a = d.opt.aimd
	}
	a.record(r, start, now, o, d.out)
	d.keepLimit(a)
}

// throttled tells it that the destination asked for fewer calls.
func (d *destination) throttled(now int64) {
	if r := d.s.aimd; r != nil {
		a := aimd{}
		if d.opt != nil {
			a = d.opt.aimd
		}
		a.lower(r, now, now)
		d.keepLimit(a)
	}
}

// keepLimit keeps the state of a limit that is lowered, and forgets one that is not.
func (d *destination) keepLimit(a aimd) {
	if a.lowered > 0 || d.opt != nil {
		d.option().aimd = a
		d.slim()
	}
}

// timed tells the adaptive timeout, if there is one, how long a call took.
func (d *destination) timed(took int64, o Outcome) {
	if d.s.timeout == nil {
		return
	}
	if d.opt == nil || d.opt.took == nil {
		if o != OutcomeSuccess && o != OutcomeSlow {
			return
		}
		d.option().took = &durations{}
	}
	d.opt.took.record(took, o)
}

// timeout is how long a call may take; 0 if the destination does not say.
func (d *destination) timeout() int64 {
	if d.s.timeout == nil {
		return 0
	}
	var took *durations
	if d.opt != nil {
		took = d.opt.took
	}
	if t := d.s.timeout.of(took); t < math.MaxInt64 {
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
