package embedded

import (
	"slices"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
)

// hub connects those who wait for messages with those who make messages visible, over all brokers on one file.
type hub struct {
	mu    sync.Mutex
	lines map[string]*line
}

func hubOf(file *sqlitefile.File) *hub {
	return file.Shared(schemaName, func() any { return &hub{lines: make(map[string]*line)} }).(*hub)
}

// line returns the line of a queue that was looked up before, or nil. Queues are never removed.
func (h *hub) line(name string) *line {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lines[name]
}

func (h *hub) add(name string, id int64) *line {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok := h.lines[name]
	if !ok {
		l = &line{name: name, id: id}
		h.lines[name] = l
	}
	return l
}

func (h *hub) each(do func(*line)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lines {
		do(l)
	}
}

// wakeAll is for news that do not say which queue they are about. One receive of each queue looks; if it finds more than it
// takes it wakes the next.
func (h *hub) wakeAll() { h.each(func(l *line) { l.wake(1) }) }

// Stop ends the timers when the file closes.
func (h *hub) Stop() { h.each((*line).stop) }

// line is where receives wait for the messages of one queue, first come, first served.
type line struct {
	name string
	id   int64

	mu      sync.Mutex
	news    uint64 // moves with each wake, so that none is missed between looking and waiting
	waiting []chan struct{}
	timer   *time.Timer // fires at due
	due     int64       // the earliest due time known, unix ms; 0 for none
}

// mark is to be read before looking for messages and passed to join.
func (l *line) mark() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.news
}

// join returns a channel that receives a value when it is worth looking again: at once if that is so since mark.
func (l *line) join(mark uint64) chan struct{} {
	ready := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.news != mark {
		ready <- struct{}{}
	} else {
		l.waiting = append(l.waiting, ready)
	}
	return ready
}

// leave gives up a place in the line, and passes on the wake that may have come too late for its owner.
func (l *line) leave(ready chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, ready); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.wakeLocked(1)
}

// wake tells the first n in the line to look.
func (l *line) wake(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked(n)
}

func (l *line) wakeLocked(n int) {
	l.news++
	n = min(n, len(l.waiting))
	for _, ready := range l.waiting[:n] {
		ready <- struct{}{}
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
}

// note says that a message becomes visible at due, in unix ms.
func (l *line) note(due int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due != 0 && l.due <= due {
		return
	}
	l.due = due
	wait := time.Until(time.UnixMilli(due))
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.fire)
	} else {
		l.timer.Reset(wait)
	}
}

func (l *line) fire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = 0
	l.wakeLocked(1)
}

func (l *line) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}
