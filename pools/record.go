package pools

import "time"

// Record tells a destination's breaker and retry budget of a call that was made without a permit, for example by a handler that
// learned only on the way whom it would call. It counts while the breaker is closed; an open or half-open one hears only its probes.
func (r *Destinations) Record(name string, now time.Time, o Outcome) {
	if name == "" {
		return
	}
	at := stamp(now)
	s, d := r.entry(name, at)
	defer s.unlock()
	d.touch(at)
	d.record(&d.s.budget, at, o, 0)
	if d.state == StateClosed {
		d.notify(&s.guard, now, d.count(d.s, at, o))
	}
}
