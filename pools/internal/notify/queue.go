package notify

import (
	"sync"
	"sync/atomic"
)

// Queue hands values to a function in the order in which they were pushed. Whoever finds nobody delivering delivers for all.
type Queue[T any] struct {
	// Fn is the hook. Nil drops everything.
	Fn func(T)

	pending atomic.Int32 // length of queue, so that callers pay one load when there is nothing to deliver

	mu     sync.Mutex
	queue  []T
	busy   bool
	panics uint64
}

// Push queues t. The caller holds the lock that orders transitions.
func (h *Queue[T]) Push(t T) {
	if h.Fn == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, t)
	h.pending.Store(int32(len(h.queue)))
}

// Deliver calls the function for what is queued, unless another goroutine, or a caller further up the stack, is doing so.
func (h *Queue[T]) Deliver() {
	if h.pending.Load() == 0 {
		return
	}
	h.deliver()
}

func (h *Queue[T]) deliver() {
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
func (h *Queue[T]) call(t T) {
	h.mu.Unlock()
	defer func() {
		r := recover()
		h.mu.Lock()
		if r != nil {
			h.panics++
		}
	}()
	h.Fn(t)
}

// Panics is how often the function has panicked.
func (h *Queue[T]) Panics() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.panics
}
