package prom

import (
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
)

// flapping remembers the last transitions of each breaker, for the alert that counters cannot give: destinations that share a label share
// their counters, so that many which open once look like one that flaps.
type flapping struct {
	mu   sync.Mutex
	last map[string]*[flapLimit]time.Time // oldest first
}

const (
	// flapLimit is how many transitions within flapWindow make a breaker flap: one outage has three, open, half-open and closed.
	flapLimit  = 4
	flapWindow = 10 * time.Minute
	// flapMax bounds the destinations remembered. More than that changing at once is one outage of everything, which shows elsewhere.
	flapMax = 10_000
)

// record remembers a transition. Overrides and resets by an operator are not flapping.
func (f *flapping) record(t breaker.Transition) {
	if t.From == t.To || t.Reason == breaker.TransitionReasonReset {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	times := f.last[t.Destination]
	if times == nil {
		if len(f.last) >= flapMax {
			f.prune(t.At)
		}
		if len(f.last) >= flapMax {
			return
		}
		if f.last == nil {
			f.last = make(map[string]*[flapLimit]time.Time)
		}
		times = new([flapLimit]time.Time)
		f.last[t.Destination] = times
	}
	copy(times[:], times[1:])
	times[flapLimit-1] = t.At
}

// count returns how many breakers flap.
func (f *flapping) count(now time.Time) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prune(now)
	for _, times := range f.last {
		if !times[0].IsZero() && now.Sub(times[0]) < flapWindow {
			n++
		}
	}
	return n
}

func (f *flapping) prune(now time.Time) {
	for name, times := range f.last {
		if now.Sub(times[flapLimit-1]) >= flapWindow {
			delete(f.last, name)
		}
	}
}
