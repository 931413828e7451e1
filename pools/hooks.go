package pools

import (
	"sync"
	"sync/atomic"
	"time"
)

// TransitionReason says why a breaker changed. There are few of them: metrics use them as labels.
type TransitionReason string

// The reasons of transitions.
const (
	TransitionReasonFailureRate     TransitionReason = "failure_rate"
	TransitionReasonSlowRate        TransitionReason = "slow_rate"
	TransitionReasonOpenElapsed     TransitionReason = "open_elapsed"
	TransitionReasonProbesSucceeded TransitionReason = "probes_succeeded"
	TransitionReasonProbesFailed    TransitionReason = "probes_failed"
	TransitionReasonReset           TransitionReason = "reset"
	TransitionReasonForcedOpen      TransitionReason = "forced_open"
	TransitionReasonForcedClosed    TransitionReason = "forced_closed"
	TransitionReasonOverrideCleared TransitionReason = "override_cleared"
)

// Transition is one change of a breaker. For a changed override From and To are the state, which the override leaves alone.
type Transition struct {
	// Destination is the normalised name; empty for a [Breaker] of its own.
	Destination string           `json:"destination"`
	From        State            `json:"from"`
	To          State            `json:"to"`
	Reason      TransitionReason `json:"reason"`
	At          time.Time        `json:"at"`
}

// hooks hands transitions to a function, one at a time and in the order in which they were pushed, never under the lock of
// the breaker. Whoever finds nobody delivering delivers for all.
type hooks struct {
	fn      func(Transition)
	pending atomic.Int32 // length of queue, so that callers pay one load when there is nothing to deliver

	mu     sync.Mutex
	queue  []Transition
	busy   bool
	panics uint64
}

// push queues t. The caller holds the lock that orders transitions.
func (h *hooks) push(t Transition) {
	if h.fn == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, t)
	h.pending.Store(int32(len(h.queue)))
}

// deliver calls the function for what is queued, unless another goroutine, or a caller further up the stack, is doing so.
func (h *hooks) deliver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy {
		return
	}
	h.busy = true
	defer func() { h.busy = false }() // also when the function ends the goroutine
	for len(h.queue) > 0 {
		t := h.queue[0]
		h.queue = h.queue[1:]
		h.pending.Store(int32(len(h.queue)))
		h.call(t)
	}
	h.queue = nil
}

// call runs the function unlocked and survives its panic.
func (h *hooks) call(t Transition) {
	h.mu.Unlock()
	defer func() {
		r := recover()
		h.mu.Lock()
		if r != nil {
			h.panics++
		}
	}()
	h.fn(t)
}

// panicked is how often the function has panicked.
func (h *hooks) panicked() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.panics
}
