package webhook

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// goneList remembers which endpoints answered 410, so that this process stops at once, whatever it takes until a registry says so to all. It is
// safe for concurrent use; the zero value is empty.
type goneList struct {
	mu    sync.RWMutex
	marks map[string]goneMark
}

// goneMark is what an endpoint was like when it answered 410. It ends once either has changed.
type goneMark struct {
	url   string
	since time.Time // Since of the endpoint: enabling it sets a later one
}

func (m goneMark) fits(e Endpoint) bool { return m.url == e.URL && !e.Since.After(m.since) }

// add marks e. It reports whether that is news.
func (l *goneList) add(e Endpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.marks[e.ID]
	if ok && m.fits(e) {
		return false
	}
	if l.marks == nil {
		l.marks = make(map[string]goneMark)
	}
	l.marks[e.ID] = goneMark{e.URL, e.Since}
	return true
}

// has reports whether e is marked as it is now. A mark that an active endpoint has outlived is dropped.
func (l *goneList) has(e Endpoint) bool {
	l.mu.RLock()
	m, ok := l.marks[e.ID]
	l.mu.RUnlock()
	switch {
	case !ok:
		return false
	case m.fits(e):
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marks[e.ID] == m {
		delete(l.marks, e.ID)
	}
	return false
}

func (l *goneList) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.marks, id)
}

func (l *goneList) ids() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.marks))
}
