package pools

import (
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Request describes a call that asks to be admitted.
type Request struct {
	// Destination is whom the call goes to. Empty means nobody in particular: it is always admitted.
	Destination string
	// Class says how urgent the call is.
	Class Class
	// Retry says that the call is not a first try, and needs retry budget.
	Retry bool
	// Places is how many calls of the caller can be in flight at the destination at once, before its own limit: the fewest of
	// slots and bulkhead. The largest number heard counts. Zero means that nobody knows. A breaker that knows it spends at most twice as
	// many calls, or 8, on a destination that fails.
	Places int
}

// Peek returns what Admit would answer. It takes nothing and makes no entry. During a ramp it says yes where Admit may hold a
// call back.
func (r *Destinations) Peek(now time.Time, req Request) Verdict {
	if req.Destination == "" {
		return Verdict{}
	}
	s, d := r.peeked(req.Destination)
	defer s.mu.Unlock()
	if reason, wait := d.check(stamp.Of(now), req.Retry, req.Class); reason != ReasonOK {
		return Verdict{Reason: reason, Wait: time.Duration(wait)}
	}
	if d.s.total != nil {
		if wait := d.s.total.Wait(now); wait > 0 {
			return Verdict{Reason: ReasonRateLimited, Wait: wait}
		}
	}
	return Verdict{}
}

// Admit takes a concurrency permit, a rate token, budget for a retry, and a breaker permit, all or nothing: a refusal burns
// nothing. Complete the permit with [Permit.Done].
func (r *Destinations) Admit(now time.Time, req Request) (Permit, Verdict) {
	if req.Destination == "" {
		return Permit{}, Verdict{}
	}
	at := stamp.Of(now)
	s, d := r.entry(req.Destination, at)
	defer s.unlock()
	d.places(at, req.Places)
	return d.admit(&s.guard, now, req.Retry, req.Class)
}

// For returns Admit for one destination and first tries, in the form that [CallConfig] takes.
func (r *Destinations) For(name string) func(now time.Time) (Permit, Verdict) {
	return func(now time.Time) (Permit, Verdict) { return r.Admit(now, Request{Destination: name}) }
}

// NextTry is when it makes sense to ask again: now while a first try would be admitted.
func (r *Destinations) NextTry(name string, now time.Time) time.Time {
	return now.Add(r.Peek(now, Request{Destination: name}).Wait)
}

// Throttle refuses calls to a destination until then, as its Retry-After asked. The breaker is not touched. The latest end holds.
// Bound what a foreign server may ask for before calling this.
func (r *Destinations) Throttle(name string, now, until time.Time) {
	if name == "" || !until.After(now) {
		return
	}
	at := stamp.Of(now)
	s, d := r.entry(name, at)
	defer s.unlock()
	d.touch(at)
	if d.throttledFor(at) == 0 { // the first of those that were under way
		d.throttled(at)
	}
	w := d.waiting()
	w.throttledUntil = max(w.throttledUntil, stamp.Add(at, int64(until.Sub(now))))
}

// Defer queues a job that is put back behind those of its destination and class, ahead of lower classes, and returns the delay:
//
//	max(wait + position / drain rate, floor), at most cap/1.2,
//	plus up to a fifth of that, at most one place in the queue (1 / drain rate, at least the floor)
//
// wait is the refusal's hint; position counts the deferred jobs that are due earlier. The drain rate is the first that is known:
//
//   - DrainRate;
//   - while closed, concurrency / average latency (Little's law) or the completions in the breaker's window, whichever is higher;
//   - before the first answer, concurrency / max(time since the first deferral, 20 ms);
//   - 10 per second.
//
// Unless it is configured it is at most 95 % of the rate limit, and the jitter a twentieth of a place, so that each job finds its token.
// Without a destination the delay is max(wait, 1 s) times a factor in [1, 1.2).
func (r *Destinations) Defer(now time.Time, req Request, wait time.Duration) time.Duration {
	if req.Destination == "" {
		return time.Duration(float64(min(max(wait, time.Second), 12*time.Hour)) * (1 + (deferJitter-1)*r.random()))
	}
	at := stamp.Of(now)
	s, d := r.entry(req.Destination, at)
	defer s.unlock()
	d.touch(at)
	return d.deferFor(at, wait, req.Class)
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
	at, ok := d.circuit.OpenSince()
	if !ok {
		return time.Time{}, false
	}
	return stamp.Time(now, at), true
}

// Force sets or, with [breaker.OverrideNone], clears an override of a destination's breaker. The state beside it goes on by itself. A name that shares the
// [Overflow], since the registry is full, gets none: it would be that of all newcomers, and outlast them. Whoever must hold calls to it asks
// for itself before each.
func (r *Destinations) Force(name string, now time.Time, o breaker.Override) {
	if name == "" {
		return
	}
	at := stamp.Of(now)
	s, d := r.entry(name, at)
	defer s.unlock()
	if d.name == Overflow && NormalizeDestination(name) != Overflow {
		return
	}
	d.touch(at)
	d.notify(&s.guard, now, d.circuit.Force(at, o))
}

// Reset closes a destination's breaker and forgets what it counted, that it was throttled or slow, and its deferred jobs. Results of calls still
// out are dropped. An override stays.
func (r *Destinations) Reset(name string, now time.Time) {
	if name == "" {
		return
	}
	s, _, d := r.find(name)
	defer s.unlock()
	if d != nil {
		d.notify(&s.guard, now, d.reset(stamp.Of(now)))
	}
}
