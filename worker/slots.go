package worker

import (
	"context"
	"sync"
)

// slots counts the places in which a queue's jobs run. Whoever receives takes slots first, so that nothing is leased that cannot start.
type slots struct {
	size int
	wake chan struct{} // holds a token while slots may be free

	mu     sync.Mutex
	free   int
	asking int // taken by a receive that has not answered yet
}

func newSlots(size int) *slots {
	s := &slots{size: size, free: size, wake: make(chan struct{}, 1)}
	s.wake <- struct{}{}
	return s
}

// take waits for at least one slot and takes all that are free, at most limit. It returns 0 when ctx is done. Call received with the answer.
func (s *slots) take(ctx context.Context, limit int) int {
	for {
		select {
		case <-ctx.Done():
			return 0
		case <-s.wake:
		}
		s.mu.Lock()
		n := min(s.free, limit)
		s.free -= n
		s.asking += n
		left := s.free > 0
		s.mu.Unlock()
		if left {
			s.signal()
		}
		if n > 0 {
			return n
		}
	}
}

// received ends a take of asked slots: got of them go to jobs, the rest is given back.
func (s *slots) received(asked, got int) {
	s.mu.Lock()
	s.asking -= asked
	s.free += asked - got
	s.mu.Unlock()
	s.signal()
}

// put gives n slots back.
func (s *slots) put(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	s.free += n
	s.mu.Unlock()
	s.signal()
}

func (s *slots) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// inUse is how many slots jobs hold. Those that wait for a receive to answer are not among them.
func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.free - s.asking
}

// shares divides total slots among weights by largest remainder; each share is at least 1. total must not be below len(weights).
func shares(total int, weights []int) []int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	out := make([]int, len(weights))
	left := total
	for i, w := range weights {
		out[i] = max(1, total*w/sum)
		left -= out[i]
	}
	for ; left != 0; left -= sign(left) {
		// Give to whoever lacks most of his exact share, or take from whoever has most above it.
		best := -1
		for i, w := range weights {
			if left < 0 && out[i] == 1 {
				continue
			}
			if best < 0 || sign(left)*(total*w-out[i]*sum) > sign(left)*(total*weights[best]-out[best]*sum) {
				best = i
			}
		}
		out[best] += sign(left)
	}
	return out
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// slot is what the attempts of one slot's goroutine use one after the other.
type slot struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the slot
	cancel context.CancelCauseFunc
}

// context returns a context to derive a handler's from, which cancel ends with a cause. It is made anew only when cancel was called: one for
// each attempt would cost more than all else about a handler's context.
func (s *slot) context(work context.Context) context.Context {
	if s.ctx == nil || s.ctx.Err() != nil {
		s.ctx, s.cancel = context.WithCancelCause(work)
	}
	return s.ctx
}

func (s *slot) close() {
	if s.cancel != nil {
		s.cancel(nil)
	}
}
