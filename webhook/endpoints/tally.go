package endpoints

import (
	"sync"
	"time"
)

const (
	// quietSuccess is how long successes of an endpoint without failures are kept back: all of them say the same.
	quietSuccess = time.Minute
	// keepSight is how long an endpoint with failures is remembered that nobody calls: longer than the gaps of any usual schedule.
	keepSight = 48 * time.Hour
)

// tally is what one process saw of its endpoints. It is bounded by their number: what is not reported yet grows together. It is safe for
// concurrent use.
type tally struct {
	mu   sync.Mutex
	seen map[string]*sight
}

// sight is one endpoint.
type sight struct {
	// last and success are when the last call, and the last success, ended.
	last, success time.Time
	// failing says that failures were seen since the last success.
	failing bool
	// spread is how long it has been failing, silences cut short: see [tally.convinced].
	spread time.Duration
	// delta is what is not reported yet.
	delta Delta
	// reported is the last success that was.
	reported time.Time
	// failed are the two events that failed last.
	failed [2]failedEvent
}

type failedEvent struct {
	id string
	at time.Time
}

func newTally() *tally { return &tally{seen: make(map[string]*sight)} }

// longestSilence is how much of the time between two failures counts.
const longestSilence = 10 * time.Minute

// add counts one call.
func (t *tally) add(endpoint, event string, at time.Time, succeeded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[endpoint]
	if s == nil {
		s = &sight{delta: Delta{Endpoint: endpoint}}
		t.seen[endpoint] = s
	}
	silence := at.Sub(s.last)
	s.last = at
	if succeeded {
		s.success, s.failed, s.spread = at, [2]failedEvent{}, 0
		s.delta = Delta{Endpoint: endpoint, Success: at}
		return
	}
	if s.failed[0].id != "" {
		s.spread += min(max(silence, 0), longestSilence)
	}
	s.failing = true
	s.delta = mergeDelta(s.delta, Delta{Failures: 1, FirstFailure: at, LastFailure: at})
	if s.failed[0].id != event {
		s.failed[1] = s.failed[0]
	}
	s.failed[0] = failedEvent{event, at}
}

// mergeDelta joins what was seen first with what was seen then.
func mergeDelta(first, then Delta) Delta {
	if !then.Success.IsZero() {
		then.Endpoint = first.Endpoint
		return then
	}
	if first.Failures == 0 {
		first.FirstFailure = then.FirstFailure
	}
	first.Failures += then.Failures
	first.LastFailure = latest(first.LastFailure, then.LastFailure)
	return first
}

// take returns what is to be reported now, and forgets endpoints that say nothing more.
func (t *tally) take(now time.Time, window time.Duration) []Delta {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Delta
	for id, s := range t.seen {
		d := s.delta
		switch {
		case d.Failures == 0 && d.Success.IsZero():
			idle := now.Sub(s.last)
			if idle > max(window, quietSuccess) && (s.failed[0].id == "" || idle > keepSight) {
				delete(t.seen, id)
			}
			continue
		case d.Failures == 0 && !s.failing && now.Sub(s.reported) < quietSuccess:
			continue
		}
		list = append(list, d)
		s.delta = Delta{Endpoint: id}
		if !d.Success.IsZero() {
			s.reported, s.failing = d.Success, d.Failures > 0
		}
	}
	return list
}

// putBack takes back what could not be reported.
func (t *tally) putBack(deltas []Delta) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range deltas {
		s := t.seen[d.Endpoint]
		if s == nil {
			s = &sight{delta: Delta{Endpoint: d.Endpoint}, last: d.FirstFailure}
			t.seen[d.Endpoint] = s
		}
		s.delta = mergeDelta(d, s.delta)
		s.failing = s.failing || d.Failures > 0
		if !d.Success.IsZero() { // it has to be told, whatever was told before
			s.reported = time.Time{}
		}
	}
}

// convinced reports whether what this process saw itself is enough to disable an endpoint that fails since then:
//
//   - More than one event failed. A single one may be poison, and says nothing of others.
//   - It failed for so long, by the monotonic clock and counting at most [longestSilence] from one failure to the next. A wall clock that jumps, and a
//     machine that slept, make hours of nothing between two failures.
func (t *tally) convinced(endpoint string, since time.Time, long time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[endpoint]
	return s != nil && s.failed[1].id != "" && !s.failed[1].at.Before(since) && s.spread >= long
}

// lately counts the endpoints that were called within the window, and those of them whose last call failed: when everybody fails at once that is
// seen within as long as it takes to call most of them.
func (t *tally) lately(now time.Time, window time.Duration) (called, failing int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.seen {
		if now.Sub(s.last) >= window {
			continue
		}
		called++
		if s.last.After(s.success) {
			failing++
		}
	}
	return called, failing
}
