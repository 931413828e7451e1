package pools

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"
)

// RateConfig tunes a rate limit. The zero value limits nothing.
type RateConfig struct {
	// Rate is how many calls per second are allowed over time; 1.0/60 is one a minute. Zero or negative means no limit.
	Rate float64
	// Burst is how many calls may come at once after a pause. Zero means 1, or a tenth of a second's worth if that is more.
	Burst int
}

func (c RateConfig) validate() error {
	switch {
	case math.IsNaN(c.Rate) || c.Rate > 1e9:
		return fmt.Errorf("rate %v: use at most 1e9 per second, or 0 for no limit", c.Rate)
	case c.Rate > 0 && c.Rate < 1e-6:
		return fmt.Errorf("rate %v: use at least 1e-6 per second, or 0 for no limit", c.Rate)
	case c.Burst < 0:
		return fmt.Errorf("burst %d: use at least 1, or 0 for the default", c.Burst)
	}
	return nil
}

// gcra is the generic cell rate algorithm (ITU-T I.371): one stamp, the theoretical arrival time, holds the whole state.
type gcra struct {
	interval  int64 // between two calls at the limit; 0 means no limit
	tolerance int64 // how far ahead of the limit a burst may run
}

func newGCRA(c RateConfig) gcra {
	if c.Rate <= 0 {
		return gcra{}
	}
	burst := cmp.Or(c.Burst, max(1, int(c.Rate/10)))
	interval := int64(math.Ceil(1e9 / c.Rate))
	return gcra{interval: interval, tolerance: mul(int64(burst-1), interval)}
}

// wait is how long from now until the next call conforms; 0 if it does.
func (g gcra) wait(tat, now int64) int64 {
	if g.interval == 0 || tat <= now {
		return 0
	}
	return max(tat-now-g.tolerance, 0)
}

// take returns the state after a call at now.
func (g gcra) take(tat, now int64) int64 {
	if g.interval == 0 {
		return tat
	}
	return add(max(tat, now), g.interval)
}

// undo undoes one take.
func (g gcra) undo(tat int64) int64 {
	if tat < never+g.interval {
		return never
	}
	return tat - g.interval
}

// Limiter is a rate limit with bursts. It is safe for concurrent use.
type Limiter struct {
	mu  sync.Mutex
	g   gcra
	tat int64
}

// NewLimiter returns a limiter with a full burst.
func NewLimiter(cfg RateConfig) (*Limiter, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("limiter: %w", err)
	}
	return &Limiter{g: newGCRA(cfg), tat: never}, nil
}

// Allow takes a token if there is one. Otherwise it takes nothing and returns how long until there is one.
func (l *Limiter) Allow(now time.Time) (bool, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := stamp(now)
	if wait := l.g.wait(l.tat, at); wait > 0 {
		return false, time.Duration(wait)
	}
	l.tat = l.g.take(l.tat, at)
	return true, 0
}

// Wait returns how long until Allow has a token; 0 if it has one now. It takes nothing.
func (l *Limiter) Wait(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.g.wait(l.tat, stamp(now)))
}

// Return returns the token of a call that was not made.
func (l *Limiter) Return() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tat = l.g.undo(l.tat)
}

// Configure changes the limit. Calls already made still count.
func (l *Limiter) Configure(cfg RateConfig) error {
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("limiter: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.g = newGCRA(cfg)
	return nil
}
