package brokerdlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/dlq"
)

// MirrorConfig tunes a [Mirror]. The zero value of each optional field means its default.
type MirrorConfig struct {
	// Store keeps the entries. Required.
	Store dlq.Store
	// Queues take the copies. Required.
	Queues *Queues
	// Most is how many dead letters one queue may have before no copy is added. It bounds what each sweep looks at. Default 1,000.
	Most int
	// Waiting is the most entries waiting to be copied. Default 1,000.
	Waiting int
	// WaitingBytes is the most bytes of their bodies. Default 16 MiB.
	WaitingBytes int
	// Timeout bounds one attempt to copy what waits, and the end of Close. Default 10 s.
	Timeout time.Duration
	// Logger is told of copies that failed, at most once a minute. Nil means slog.Default().
	Logger *slog.Logger
}

func (c MirrorConfig) withDefaults() MirrorConfig {
	c.Most = cmp.Or(c.Most, 1000)
	c.Waiting = cmp.Or(c.Waiting, 1000)
	c.WaitingBytes = cmp.Or(c.WaitingBytes, 16<<20)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c MirrorConfig) validate() error {
	switch {
	case c.Store == nil, c.Queues == nil:
		return errors.New("store and queues are required")
	case c.Most < 0, c.Waiting < 0, c.WaitingBytes < 0, c.Timeout < 0:
		return fmt.Errorf("most %d, waiting %d, waiting bytes %d, timeout %v: must not be negative", c.Most, c.Waiting, c.WaitingBytes, c.Timeout)
	}
	return nil
}

// Mirror is a store that also copies each dead letter to its queue's own dead-letter queue, for alarms on that. Put returns what the store
// returns. Copies are made later and tried once; what cannot be copied is counted and logged. [Queues.Sweep] removes copies whose entry is no
// longer dead, and stores those whose entry the store has lost.
type Mirror struct {
	dlq.Store
	cfg MirrorConfig

	mu      sync.Mutex // guards waiting, bytes and closed
	waiting []dlq.Entry
	bytes   int
	closed  bool

	wake   chan struct{} // one place
	cancel context.CancelFunc
	done   chan struct{}
	warned time.Time

	copied, failed, dropped atomic.Int64
}

// MirrorStats counts entries since the start.
type MirrorStats struct {
	// Copied entries are in the broker, Failed ones are not, and Dropped ones were not tried because there was no room.
	Copied, Failed, Dropped int64
}

// NewMirror starts a mirror. Close it before the broker.
func NewMirror(cfg MirrorConfig) (*Mirror, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("mirror of dead letters: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &Mirror{Store: cfg.Store, cfg: cfg, wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	go m.run(ctx)
	return m, nil
}

// Put stores entries, and leaves copies of the dead ones for later.
func (m *Mirror) Put(ctx context.Context, entries []dlq.Entry) []error {
	errs := m.Store.Put(ctx, entries)
	for i, e := range entries {
		if errs[i] == nil && e.State == dlq.StateDead {
			m.later(e)
		}
	}
	return errs
}

func (m *Mirror) later(e dlq.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.waiting) >= m.cfg.Waiting || m.bytes+len(e.Message.Body) > m.cfg.WaitingBytes && m.bytes > 0 {
		m.dropped.Add(1)
		return
	}
	m.waiting = append(m.waiting, e)
	m.bytes += len(e.Message.Body)
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Stats counts what was copied and what was not.
func (m *Mirror) Stats() MirrorStats {
	return MirrorStats{Copied: m.copied.Load(), Failed: m.failed.Load(), Dropped: m.dropped.Load()}
}

// Close copies what waits, for as long as [MirrorConfig.Timeout], and ends the mirror. The store stays open.
func (m *Mirror) Close() error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		close(m.wake)
	}
	m.mu.Unlock()
	late := time.AfterFunc(m.cfg.Timeout, m.cancel)
	defer late.Stop()
	<-m.done
	return nil
}

// run copies what waits until the mirror is closed.
func (m *Mirror) run(ctx context.Context) {
	defer close(m.done)
	defer m.cancel()
	for range m.wake {
		m.copyWaiting(ctx)
	}
	m.copyWaiting(ctx)
}

func (m *Mirror) copyWaiting(ctx context.Context) {
	m.mu.Lock()
	waiting := m.waiting
	m.waiting, m.bytes = nil, 0
	m.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	waiting = m.roomFor(ctx, waiting)
	var last error
	failed := 0
	for _, err := range m.cfg.Queues.put(ctx, waiting, true) {
		if err != nil {
			failed++
			last = err
		}
	}
	m.copied.Add(int64(len(waiting) - failed))
	m.failed.Add(int64(failed))
	if now := time.Now(); failed > 0 && now.Sub(m.warned) >= time.Minute {
		m.warned = now
		m.cfg.Logger.Warn("dead letters are stored, but not copied to the broker's own dead-letter queues (dlq.mirror)",
			"failed", m.failed.Load(), "dropped", m.dropped.Load(), "error", last)
	}
}

// roomFor leaves out entries whose queue is full. A queue that the broker cannot count is not full.
func (m *Mirror) roomFor(ctx context.Context, waiting []dlq.Entry) []dlq.Entry {
	room := map[string]int{}
	var fit []dlq.Entry
	for _, e := range waiting {
		left, asked := room[e.Queue]
		if !asked {
			left = m.cfg.Most
			if n, known, err := m.cfg.Queues.count(ctx, e.Queue); err == nil && known {
				left -= n
			}
		}
		room[e.Queue] = left - 1
		if left <= 0 {
			m.dropped.Add(1)
			continue
		}
		fit = append(fit, e)
	}
	return fit
}
