package embedded

import "sync"

// slots bounds what a subscription holds unsettled. A slot is freed by a settlement or by the end of the lease.
type slots struct {
	mu    *sync.Mutex
	size  int
	used  int // reserved or held
	held  map[*handle]struct{}
	freed chan struct{} // closed and replaced when a slot is freed; nil while nobody waits
}

func newSlots(size int) slots {
	return slots{mu: new(sync.Mutex), size: size, held: make(map[*handle]struct{})}
}

// reserve takes up to n slots. If there are none it returns a channel that is closed when that changes and the time, in unix ms,
// when the next lease ends; 0 if all slots are only reserved.
func (s *slots) reserve(n int, now int64) (got int, freed <-chan struct{}, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == s.size {
		next = s.expire(now)
	}
	if got = min(n, s.size-s.used); got > 0 {
		s.used += got
		return got, nil, 0
	}
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return 0, s.freed, next
}

// expire frees the slots of leases that have ended and returns when the next one ends.
func (s *slots) expire(now int64) (next int64) {
	for h := range s.held {
		switch due := h.due; {
		case due <= now:
			delete(s.held, h)
			s.used--
		case next == 0 || due < next:
			next = due
		}
	}
	return next
}

// fill turns reserved slots into held ones and gives the rest back.
func (s *slots) fill(reserved int, handles []*handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range handles {
		s.held[h] = struct{}{}
	}
	if reserved > len(handles) {
		s.used -= reserved - len(handles)
		s.announce()
	}
}

// free ends the hold of h, if it has not ended.
func (s *slots) free(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.held[h]; ok {
		delete(s.held, h)
		s.used--
		s.announce()
	}
}

// prolong moves the end of h's lease.
func (s *slots) prolong(h *handle, due int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.due = due
}

func (s *slots) announce() {
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}
