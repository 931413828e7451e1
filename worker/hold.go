package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
)

// holder decides when the jobs of a destination whose breaker stays open leave the queue, and brings them back: first a few probes, then a
// ramp. So a long outage costs each job about two broker operations, however often the breaker looks whether it is over.
type holder struct {
	w *Worker

	mu           sync.Mutex
	destinations map[string]*heldDestination
}

// heldDestination is what this worker knows of a destination that is, or was lately, sick.
type heldDestination struct {
	deferred    int       // jobs put back since the breaker opened
	ramp        int       // how many to release in the next interval
	probedAt    time.Time // when probes were last released
	requestedAt time.Time // when a handler last asked to hold a job
}

const (
	// probeWait is how long probes have to arrive before others are sent, in intervals.
	probeWait = 5
	// requestWait is how long nothing is released after a handler asked to hold a job of the destination, in intervals: the next ones would
	// be held again.
	requestWait = 10
)

// probeCount is how many held jobs are released to find out whether a destination has recovered: as many as a breaker lets through by default.
var probeCount = breaker.Config{}.WithDefaults().Probes

func newHolder(w *Worker) *holder {
	return &holder{w: w, destinations: make(map[string]*heldDestination)}
}

// refused is the verdict for a job whose destination says no for now.
func (a *attempt) refused(r pools.Verdict, now time.Time) verdict {
	name := pools.NormalizeDestination(a.job.Destination) // as the breaker knows it: many names of one host have one backlog
	v := verdict{outcome: OutcomeDeferred, reason: r.Reason.String(), err: fmt.Errorf("destination %q: %s", name, r.Reason)}
	if v.hold = a.mayBeHeld() && a.w.hold.shouldHold(name, r, now); !v.hold {
		v.after = a.w.destinations.Defer(now, pools.Request{Destination: name, Class: a.queue.class()}, r.Wait)
	}
	return v
}

// mayBeHeld reports whether the job could leave its queue and come back: a job of a FIFO queue would lose its place, and one without a
// destination would never be released.
func (a *attempt) mayBeHeld() bool {
	return a.w.deadLetters != nil && !a.queue.limits.FIFO && a.job.Destination != ""
}

// shouldHold says whether a job of the destination is to be held rather than deferred. What an operator forced open stays so for long: its jobs
// are held at once. What a breaker opened may be over in a minute.
func (h *holder) shouldHold(name string, r pools.Verdict, now time.Time) bool {
	cfg := h.w.cfg.Hold
	switch r.Reason {
	case pools.ReasonForcedOpen:
		return *cfg.After > 0 || *cfg.Backlog > 0
	case pools.ReasonBreakerOpen, pools.ReasonSharedOpen:
	default:
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.get(name)
	if since, open := h.w.destinations.OpenSince(name, now); open && *cfg.After > 0 && now.Sub(since) >= *cfg.After {
		return true
	}
	if *cfg.Backlog > 0 && d.deferred >= *cfg.Backlog {
		return true
	}
	d.deferred++
	return false
}

func (h *holder) get(name string) *heldDestination {
	d := h.destinations[name]
	if d == nil {
		d = &heldDestination{}
		h.destinations[name] = d
	}
	return d
}

// recordRequest hears that a handler wants jobs of a destination held that the breaker would let through.
func (h *holder) recordRequest(name string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.get(name)
	d.requestedAt, d.ramp = now, 0
}

// breakerChanged hears of a breaker's transition: once it is closed its backlog counts anew.
func (h *holder) breakerChanged(t breaker.Transition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.destinations[t.Destination]; d != nil && t.To == breaker.StateClosed {
		d.deferred = 0
	}
}

// run releases held jobs until ctx is done.
func (h *holder) run(ctx context.Context) {
	if h.w.deadLetters == nil {
		return
	}
	for pause.For(ctx, jitter(h.w.cfg.Hold.Interval)) {
		depth, err := h.w.deadLetters.Depth(ctx)
		if err != nil {
			continue // the store's own error shows where it matters; look again
		}
		now := time.Now()
		waiting := make(map[string]bool, len(depth.Held))
		for _, held := range depth.Held {
			waiting[held.Destination] = true
			h.release(ctx, held.Destination, now)
		}
		h.forget(waiting, now)
	}
}

// release publishes as many held jobs of one destination as its breaker makes sensible now.
func (h *holder) release(ctx context.Context, name string, now time.Time) {
	count, probe := h.due(name, now)
	if count == 0 {
		return
	}
	n, err := dlq.ReleaseHeld(ctx, h.w.deadLetters, h.w.cfg.Broker, name, count, h.w.cfg.Owner)
	if err != nil {
		h.w.cfg.Logger.Warn("held jobs could not be released; trying again", "destination", name, "released", n, "error", err)
	}
	if n > 0 {
		h.w.observe(&Released{Destination: name, Count: n, Probe: probe})
	}
}

func (h *holder) due(name string, now time.Time) (count int, probe bool) {
	admissible := h.w.destinations.Peek(now, pools.Request{Destination: name}).OK()
	_, open := h.w.destinations.OpenSince(name, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.get(name)
	switch {
	case now.Sub(d.requestedAt) < requestWait*h.w.cfg.Hold.Interval:
		return 0, false
	case !admissible:
		if open {
			d.ramp = 0
		}
		return 0, false
	case open: // half-open, or ready to be
		d.ramp = 0
		if now.Sub(d.probedAt) < probeWait*h.w.cfg.Hold.Interval {
			return 0, true
		}
		d.probedAt = now
		return probeCount, true
	}
	d.ramp = min(max(2*d.ramp, h.w.cfg.Hold.RampStart), h.w.cfg.Hold.RampMax)
	return d.ramp, false
}

// forget drops destinations that are healthy and hold nothing.
func (h *holder) forget(waiting map[string]bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.destinations {
		if _, open := h.w.destinations.OpenSince(name, now); !open && !waiting[name] {
			delete(h.destinations, name)
		}
	}
}
