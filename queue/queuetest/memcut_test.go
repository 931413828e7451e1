package queuetest

import (
	"slices"
	"time"
)

// cut breaks all connections for half a second. What was leased over them is given back.
func (s *memStore) cut() {
	const moment = 500 * time.Millisecond
	s.mu.Lock()
	s.down = time.Now().Add(moment)
	s.session++
	s.tags = 0
	for name, msgs := range s.queues {
		if s.faults.losesLeased {
			s.queues[name] = slices.DeleteFunc(msgs, func(m *memMessage) bool { return m.leased })
		}
		for _, m := range s.queues[name] {
			if m.leased {
				m.leased, m.visible = false, time.Now()
			}
		}
	}
	s.change()
	s.mu.Unlock()
	time.Sleep(moment)
}

// isDown is true while nothing can be reached. The caller holds mu.
func (s *memStore) isDown() bool { return time.Now().Before(s.down) }

// acrossCut makes the mistake of staleTags: a handle of an old connection settles what the new one calls by the same number.
func (h *memHandle) acrossCut() {
	if s := h.s.b.memStore; s.faults.staleTags && h.session < s.session {
		for _, m := range s.queues[h.s.queue] {
			if m.leased && m.tag == h.tag {
				h.m, h.generation = m, m.generation
			}
		}
	}
}
