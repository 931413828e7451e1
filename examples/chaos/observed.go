package main

import (
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

// observed is what one run came to. It is a [worker.Observer].
type observed struct {
	setup    setup
	endpoint *endpoint

	mu       sync.Mutex
	begin    time.Time
	calls    []call
	changes  []change
	waited   map[string]bool // jobs that were put back or failed at least once
	refused  int             // deferrals by the breaker
	deferred map[string]int  // by reason
	done     map[string]bool // jobs that succeeded or died
	dead     int
}

// call is one attempt.
type call struct {
	at, took time.Duration // at is its end
	ok       bool
}

// change is a breaker's transition.
type change struct {
	at time.Duration
	to breaker.State
}

func newObserved(s setup, e *endpoint) *observed {
	return &observed{setup: s, endpoint: e, waited: map[string]bool{}, deferred: map[string]int{}, done: map[string]bool{}}
}

func (o *observed) start(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin = at
}

// attempt is told of each call.
func (o *observed) attempt(a webhook.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, call{at: time.Since(o.begin), took: a.Response.Duration, ok: a.Response.Status/100 == 2})
}

// Observe implements [worker.Observer].
func (o *observed) Observe(e worker.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := e.(type) {
	case *worker.BreakerChanged:
		o.changes = append(o.changes, change{at: e.At.Sub(o.begin), to: e.To})
	case *worker.Settled:
		o.settled(e)
	}
}

func (o *observed) settled(e *worker.Settled) {
	id := e.Job.ID
	switch e.Settlement {
	case worker.SettlementAck:
		o.done[id] = true
	case worker.SettlementDeadLetter:
		o.done[id] = true
		o.dead++
	default:
		o.waited[id] = true
	}
	if e.Outcome == worker.OutcomeDeferred {
		o.deferred[string(e.Reason)]++
		if string(e.Reason) == pools.ReasonBreakerOpen.String() {
			o.refused++
		}
	}
}

func (o *observed) finished() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.done)
}

// events is how many there were.
func (o *observed) events() int { return len(o.setup.due) }

// delivered is how many arrived by then.
func (o *observed) delivered(by time.Duration) (n int) {
	for _, at := range o.endpoint.accepted {
		if at <= by {
			n++
		}
	}
	return n
}

// atOnce is how many arrived with the first attempt and without being put back.
func (o *observed) atOnce() (n int) {
	for id := range o.endpoint.accepted {
		if !o.waited[id] {
			n++
		}
	}
	return n
}

// end is far beyond any run.
const end = time.Hour

// attempts is how many calls were made.
func (o *observed) attempts() int { return len(o.calls) }

// between counts the calls that ended in a span of time.
func (o *observed) between(from, to time.Duration) (n int) {
	for _, c := range o.calls {
		if c.at >= from && c.at < to {
			n++
		}
	}
	return n
}

// wasted is the time spent on calls that failed.
func (o *observed) wasted() (sum time.Duration) {
	for _, c := range o.calls {
		if !c.ok {
			sum += c.took
		}
	}
	return sum
}

// opened counts how often the breaker opened.
func (o *observed) opened() (n int) {
	for _, c := range o.changes {
		if c.to == breaker.StateOpen {
			n++
		}
	}
	return n
}

// firstOpen is when it opened first; false if it never did.
func (o *observed) firstOpen() (time.Duration, bool) {
	for _, c := range o.changes {
		if c.to == breaker.StateOpen {
			return c.at, true
		}
	}
	return 0, false
}

// closedAfter is when it closed first after a time; false if it did not.
func (o *observed) closedAfter(t time.Duration) (time.Duration, bool) {
	for _, c := range o.changes {
		if c.at >= t && c.to == breaker.StateClosed {
			return c.at, true
		}
	}
	return 0, false
}

// acceptedAfter is when the first event arrived after a time.
func (o *observed) acceptedAfter(t time.Duration) (first time.Duration, found bool) {
	for _, at := range o.endpoint.accepted {
		if at >= t && (!found || at < first) {
			first, found = at, true
		}
	}
	return first, found
}

// caughtUp is when the last of the events that were due before a time had arrived; false if one has not.
func (o *observed) caughtUp(before time.Duration) (last time.Duration, all bool) {
	for n, due := range o.setup.due {
		at, arrived := o.endpoint.accepted[eventID(n)]
		if due < before && !arrived {
			return 0, false
		}
		if due < before {
			last = max(last, at)
		}
	}
	return last, true
}

// peak is the most requests that began in one span of that width.
func (o *observed) peak(width time.Duration) (most int) {
	counts := map[int]int{}
	for _, at := range o.endpoint.arrived {
		slot := int(at / width)
		counts[slot]++
		most = max(most, counts[slot])
	}
	return most
}
