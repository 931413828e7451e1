package pools

import "time"

// Peek tells what Admit would answer. It takes nothing and makes no entry. During a ramp it says yes where Admit may hold a
// call back. retry says that the call is a retry and needs budget.
func (r *Destinations) Peek(name string, now time.Time, retry bool) Verdict {
	return r.PeekAs(0, name, now, retry)
}

// PeekAs is Peek for a call of that class.
func (r *Destinations) PeekAs(class Class, name string, now time.Time, retry bool) Verdict {
	if name == "" {
		return Verdict{}
	}
	s, d := r.peeked(name)
	defer s.mu.Unlock()
	if reason, wait := d.check(stamp(now), retry, min(class, Classes-1)); reason != ReasonOK {
		return Verdict{Reason: reason, Wait: time.Duration(wait)}
	}
	if d.s.total != nil {
		if wait := d.s.total.Wait(now); wait > 0 {
			return Verdict{Reason: ReasonRateLimited, Wait: wait}
		}
	}
	return Verdict{}
}

// Admit takes a concurrency permit, a rate token, budget if retry is set, and a breaker permit, all or nothing: a refusal burns
// nothing. Complete the permit with [Permit.Done].
func (r *Destinations) Admit(name string, now time.Time, retry bool) (Permit, Verdict) {
	return r.AdmitAs(0, name, now, retry)
}

// AdmitAs is Admit for a call of that class.
func (r *Destinations) AdmitAs(class Class, name string, now time.Time, retry bool) (Permit, Verdict) {
	if name == "" {
		return Permit{}, Verdict{}
	}
	s, d := r.entry(name, stamp(now))
	defer s.unlock()
	return d.admit(&s.guard, now, retry, min(class, Classes-1))
}

// For returns Admit for one destination and first tries, in the form that [CallConfig] takes.
func (r *Destinations) For(name string) func(now time.Time) (Permit, Verdict) {
	return func(now time.Time) (Permit, Verdict) { return r.Admit(name, now, false) }
}

// NextTry is when it makes sense to ask again: now while a first try would be admitted.
func (r *Destinations) NextTry(name string, now time.Time) time.Time {
	return now.Add(r.Peek(name, now, false).Wait)
}

// Gate closes a destination until then, as its Retry-After asked. The breaker is not touched. The latest of several gates
// holds. Bound what a foreign server may ask for before calling this.
func (r *Destinations) Gate(name string, now, until time.Time) {
	if name == "" || !until.After(now) {
		return
	}
	at := stamp(now)
	s, d := r.entry(name, at)
	defer s.unlock()
	d.touch(at)
	t := d.trouble()
	if t.gate <= at { // the first of those that were under way
		d.throttled(at)
	}
	t.gate = max(t.gate, add(at, int64(until.Sub(now))))
}

// Defer gives a job that is put back its place in the destination's line and returns the delay:
//
//	max(wait + position / drain rate, floor), at most cap/1.2,
//	plus up to a fifth of that, but not more than one place in the line (1 / drain rate, at least the floor)
//
// wait is the refusal's hint. position is the number of jobs that were deferred before and are not due yet, so that they come back
// one by one and not all at once. The drain rate is DrainRate; else, while the breaker is closed, concurrency / average latency of
// answered calls (Little's law) or the rate of completions in the breaker's window, whichever is higher. While no call was answered,
// concurrency / max(time since the first job was deferred, 20 ms): calls take at least that long. While the breaker is open, or without a
// limit on concurrency and an answer, [DefaultDrainRate]. All but the first are at
// most 95 % of the rate limit, and the plus is then a twentieth of a place, so that each job finds its token. Without a destination the delay
// is max(wait, 1 s) times a factor in [1, 1.2).
func (r *Destinations) Defer(name string, now time.Time, wait time.Duration) time.Duration {
	return r.DeferAs(0, name, now, wait)
}

// DeferAs is Defer for a job of that class: it has its place before all jobs of the classes behind it, which give way until it is due.
func (r *Destinations) DeferAs(class Class, name string, now time.Time, wait time.Duration) time.Duration {
	if name == "" {
		return time.Duration(float64(min(max(wait, time.Second), 12*time.Hour)) * (1 + (deferJitter-1)*r.random()))
	}
	at := stamp(now)
	s, d := r.entry(name, at)
	defer s.unlock()
	d.touch(at)
	return d.deferFor(at, wait, min(class, Classes-1))
}

// OpenSince is when the destination left closed for good, that is since when no ordinary call gets through: its breaker is
// open or half-open, or forced open. It returns false while calls do.
func (r *Destinations) OpenSince(name string, now time.Time) (time.Time, bool) {
	if name == "" {
		return time.Time{}, false
	}
	s, _, d := r.find(name)
	defer s.mu.Unlock()
	if d == nil {
		return time.Time{}, false
	}
	at, ok := d.openSince()
	if !ok {
		return time.Time{}, false
	}
	return timeAt(now, at), true
}

// Force sets or, with [OverrideNone], clears an override of a destination's breaker. The state beside it goes on by itself. A name that shares the
// [Overflow], since the registry is full, gets none: it would be that of all newcomers, and outlast them. Whoever must hold calls to it asks
// for itself before each.
func (r *Destinations) Force(name string, now time.Time, o Override) {
	if name == "" {
		return
	}
	at := stamp(now)
	s, d := r.entry(name, at)
	defer s.unlock()
	if d.name == Overflow && NormalizeDestination(name) != Overflow {
		return
	}
	d.touch(at)
	d.tell(&s.guard, now, d.force(at, o))
}

// Reset closes a destination's breaker and forgets what it counted, its gate, its line of deferred jobs, and that it was slow. Results of calls still
// out are dropped. An override stays.
func (r *Destinations) Reset(name string, now time.Time) {
	if name == "" {
		return
	}
	s, _, d := r.find(name)
	defer s.unlock()
	if d != nil {
		d.took = 0
		d.tell(&s.guard, now, d.reset(stamp(now)))
	}
}
