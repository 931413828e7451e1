package endpoints

import "time"

// Delta is what one worker saw of one endpoint since it last reported.
type Delta struct {
	Endpoint string
	// Failures are failed calls since the last success, or in all if there was none.
	Failures int
	// FirstFailure is when the first of them ended; zero without any.
	FirstFailure time.Time
	// LastFailure is when the last of them ended. Zero means at FirstFailure.
	LastFailure time.Time
	// Success is when the last success ended; zero if there was none. Failures before it do not count.
	Success time.Time
}

// Health is what all workers together saw of one endpoint.
type Health struct {
	Endpoint string
	// Failures since the last success. Where a report leaves open how many of its failures a success of another worker ended, at least one
	// stands for those that are left.
	Failures int64
	// FailingSince is when the first of them ended; zero while there is none.
	FailingSince time.Time
	// LastSuccess and LastFailure are zero if there was none.
	LastSuccess, LastFailure time.Time
	// Recovered is when its failures were last forgotten, by the store's clock; zero if never. What failed before does not count.
	Recovered time.Time
}

// Add returns the health with a report added. The order in which reports come does not matter to what they end.
func (h Health) Add(d Delta) Health {
	reported := d.run().after(d.Success)
	h.LastSuccess = latest(h.LastSuccess, d.Success)
	ended := latest(h.LastSuccess, h.Recovered)
	kept, added := run{h.Failures, h.FailingSince, h.LastFailure}.after(ended), reported.after(ended)
	h.Failures, h.FailingSince = kept.count+added.count, kept.first
	if kept.count == 0 || added.count > 0 && added.first.Before(kept.first) {
		h.FailingSince = added.first
	}
	h.LastFailure = latest(h.LastFailure, d.run().last)
	return h
}

// Forget returns the health with the failures up to now forgotten.
func (h Health) Forget(now time.Time) Health {
	h.Recovered = latest(h.Recovered, now)
	h.Failures, h.FailingSince = 0, time.Time{}
	return h
}

// run is a row of failures.
type run struct {
	count       int64
	first, last time.Time
}

func (d Delta) run() run {
	if d.Failures <= 0 {
		return run{}
	}
	return run{int64(d.Failures), d.FirstFailure, latest(d.FirstFailure, d.LastFailure)}
}

// after returns what is left of a run after its failures up to t have ended. Of a run that t cuts in two the last failure is known, and no
// other.
func (r run) after(t time.Time) run {
	switch {
	case r.count == 0:
		return run{}
	case r.first.After(t):
		return r
	case r.last.After(t):
		return run{1, r.last, r.last}
	}
	return run{}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
