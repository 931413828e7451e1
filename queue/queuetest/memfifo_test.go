package queuetest

import (
	"slices"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// dedupWindow is how long a FIFO queue remembers the id of a publication.
const dedupWindow = 5 * time.Minute

// duplicate tells whether p is dropped, and remembers it. The caller holds mu.
func (s *memStore) duplicate(p queue.Publication) bool {
	id := p.DedupID
	if s.faults.dedupsByGroup {
		id = p.Group
	}
	if !s.fifo || s.faults.keepsDuplicates || id == "" {
		return false
	}
	if at, seen := s.dedup[id]; seen && time.Since(at) < dedupWindow {
		return true
	}
	s.dedup[id] = time.Now()
	return false
}

// inGroups returns msgs in the order of their publishing, and what tells of each of them, in that order, whether it waits for another
// one of its group. The caller holds mu.
func (s *memStore) inGroups(msgs []*memMessage, now time.Time) ([]*memMessage, func(*memMessage) bool) {
	f := s.faults
	if f.overtakesLost {
		for _, m := range msgs {
			if m.leased && !m.visible.After(now) {
				s.lastID++
				m.order, m.leased = s.lastID, false
			}
		}
	}
	msgs = slices.Clone(msgs)
	slices.SortFunc(msgs, func(a, b *memMessage) int {
		if f.swapsGroup {
			a, b = b, a
		}
		return a.order - b.order
	})
	headed := map[string]bool{}
	return msgs, func(m *memMessage) bool {
		group := m.group
		if f.stallsQueue {
			group = ""
		}
		waits, hidden := headed[group], m.visible.After(now)
		if hidden && m.leased && f.overtakesLeased || hidden && !m.leased && f.overtakesRetried {
			return waits
		}
		headed[group] = true
		return waits
	}
}
