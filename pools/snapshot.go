package pools

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// DestinationSnapshot describes one destination for display.
type DestinationSnapshot struct {
	Destination string           `json:"destination"`
	State       breaker.State    `json:"state"`
	Override    breaker.Override `json:"override"`
	// OpenSince is when it left closed; zero while it is closed.
	OpenSince time.Time `json:"open_since,omitzero"`
	// NextTry is when the breaker, throttling or rate limit lets the next call through; zero if it does now.
	NextTry time.Time `json:"next_try,omitzero"`
	// Verdict is what a first try would be answered now.
	Verdict Verdict `json:"verdict"`
	// ThrottledUntil is the end of what the destination asked for itself (Retry-After); zero if it did not.
	ThrottledUntil time.Time `json:"throttled_until,omitzero"`
	// Waiting is about how many jobs have been deferred and are not due yet: the length of the destination's line at its drain rate.
	Waiting int `json:"waiting"`
	// InUse counts the permits that are out, Concurrency is how many there are; 0 means no limit.
	InUse       int `json:"in_use"`
	Concurrency int `json:"concurrency"`
	// Limit is how many calls adaptive concurrency allows now, if it allows fewer; else 0.
	Limit int `json:"limit,omitempty"`
	// Users is how many workers share the rate limit of a shared destination; 0 if it is this one's alone.
	Users int `json:"users,omitempty"`
	// InLane says that the destination is slow, or new, and its calls count in the slow lane.
	InLane bool `json:"in_lane,omitempty"`
	// Timeout is how long a call may take by what is known of the destination; 0 if it does not say.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Calls, Failures and Slow count what completed in the breaker's window.
	Calls    int `json:"calls"`
	Failures int `json:"failures"`
	Slow     int `json:"slow"`
	// InARow counts the failures since a call was answered that started before them.
	InARow int `json:"in_a_row"`
	// FailedRounds is how often in a row the probes failed.
	FailedRounds int `json:"failed_rounds"`
	// RetriesLeft is how many retries the budget allows now.
	RetriesLeft int `json:"retries_left"`
}

func (d *destination) snapshot(now time.Time) DestinationSnapshot {
	at := stamp.Of(now)
	reason, wait := d.check(at, false, 0)
	calls := d.circuit.Calls(&d.s.breaker, at)
	s := DestinationSnapshot{
		Destination: d.name, State: d.circuit.State(), Override: d.circuit.Override(),
		Verdict: Verdict{Reason: reason, Wait: time.Duration(wait)},
		InUse:   int(d.out), Concurrency: int(d.s.concurrency),
		Calls: int(calls.Completed), Failures: int(calls.Failed), Slow: int(calls.Slow), //nolint:gosec // far below
		RetriesLeft: d.balance.Left(&d.s.budget, at), InARow: d.circuit.InARow(), FailedRounds: d.circuit.FailedRounds(),
	}
	if limit := d.limit(); limit < d.s.concurrency {
		s.Limit = int(limit)
	}
	if n := d.users(); n > 1 {
		s.Users = int(n)
	}
	s.Timeout = time.Duration(d.timeout())
	s.InLane = d.s.lane != nil && d.pace(at) != paceQuick
	if wait > 0 {
		s.NextTry = now.Add(time.Duration(wait))
	}
	if since, ok := d.circuit.OpenSince(); ok {
		s.OpenSince = stamp.Time(now, since)
	}
	if w := d.waits(); w != nil {
		if w.throttledUntil > at {
			s.ThrottledUntil = stamp.Time(now, w.throttledUntil)
		}
		if from := stamp.Add(at, wait); w.backlog.end() > from {
			s.Waiting = int(math.Ceil(float64(w.backlog.end()-from) / 1e9 * d.drainRate(at)))
		}
	}
	return s
}

// healthy reports whether there is nothing to tell about d: closed here and elsewhere, not overridden, not throttled.
func (d *destination) healthy(at int64) bool {
	return d.circuit.State() == breaker.StateClosed && d.circuit.Override() == breaker.OverrideNone && d.throttledFor(at) == 0 && d.sharedWait(at) == 0
}

// Snapshot describes all destinations, sorted by name, and forgets the idle ones. The overflow is listed while it is in use.
func (r *Destinations) Snapshot(now time.Time) []DestinationSnapshot {
	return r.snapshot(now, true)
}

// Unhealthy describes the destinations that are not simply closed: open here or at another worker, half-open, overridden or throttled.
func (r *Destinations) Unhealthy(now time.Time) []DestinationSnapshot {
	return r.snapshot(now, false)
}

func (r *Destinations) snapshot(now time.Time, all bool) []DestinationSnapshot {
	at, t := stamp.Of(now), r.table.Load()
	list := []DestinationSnapshot{}
	r.each(func(s *shard) {
		if s != &r.overflow {
			r.sweep(s, at, t, len(s.m), nil)
		}
		for _, d := range s.m {
			if healthy := d.healthy(at); healthy && (!all || d.name == Overflow && d.out == 0 && !d.circuit.Counting()) {
				continue
			}
			list = append(list, d.snapshot(now))
		}
	})
	slices.SortFunc(list, func(a, b DestinationSnapshot) int { return strings.Compare(a.Destination, b.Destination) })
	return list
}

// Pressure counts the destinations that are held back below their limits.
type Pressure struct {
	// Slow ones are in the slow lane, and New ones beside it until their first call has ended.
	Slow, New int
	// Limited ones have an adaptive limit below their concurrency.
	Limited int
}

// Pressure looks at all destinations.
func (r *Destinations) Pressure(now time.Time) Pressure {
	at, p := stamp.Of(now), Pressure{}
	r.each(func(s *shard) {
		for _, d := range s.m {
			if d.limit() < d.s.concurrency {
				p.Limited++
			}
			if d.s.lane == nil || d.out == 0 && d.took() == 0 { // nobody has asked yet
				continue
			}
			switch d.pace(at) {
			case paceSlow:
				p.Slow++
			case paceNew:
				p.New++
			}
		}
	})
	return p
}

// Lookup describes one destination; false if it is not known.
func (r *Destinations) Lookup(name string, now time.Time) (DestinationSnapshot, bool) {
	s, _, d := r.find(name)
	defer s.mu.Unlock()
	if d == nil {
		return DestinationSnapshot{}, false
	}
	return d.snapshot(now), true
}
