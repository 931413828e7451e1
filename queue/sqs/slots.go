package sqs

import (
	"sync"
	"time"
)

// slots bounds what a subscription holds unsettled. A slot is freed by a settlement or by the end of the lease.
type slots struct {
	mu    sync.Mutex
	size  int
	used  int // reserved or held
	held  map[*handle]struct{}
	freed func() // called, without the lock, when a slot was freed
}

// reserve takes up to n slots. If there are none it returns when the next lease ends; zero if all slots are only reserved.
func (s *slots) reserve(n int, now time.Time) (got int, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == s.size {
		next = s.expire(now)
	}
	got = min(n, s.size-s.used)
	s.used += got
	return got, next
}

// expire frees the slots of leases that have ended and returns when the next one ends.
func (s *slots) expire(now time.Time) (next time.Time) {
	for h := range s.held {
		switch deadline := h.ends(); {
		case !now.Before(deadline):
			delete(s.held, h)
			s.used--
		case next.IsZero() || deadline.Before(next):
			next = deadline
		}
	}
	return next
}

// fill turns reserved slots into held ones and gives the rest back.
func (s *slots) fill(reserved int, handles []*handle) {
	s.mu.Lock()
	for _, h := range handles {
		s.held[h] = struct{}{}
	}
	s.used -= reserved - len(handles)
	s.mu.Unlock()
	if reserved > len(handles) {
		s.freed()
	}
}

// free ends the hold of h, if it has not ended.
func (s *slots) free(h *handle) {
	s.mu.Lock()
	_, ok := s.held[h]
	if ok {
		delete(s.held, h)
		s.used--
	}
	s.mu.Unlock()
	if ok {
		s.freed()
	}
}
