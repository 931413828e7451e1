package limiter

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Config tunes a rate limit. The zero value limits nothing.
type Config struct {
	// Rate is how many calls per second are allowed over time; 1.0/60 is one a minute. Nil or zero means no limit.
	Rate *float64
	// Burst is how many calls may come at once after a pause. Zero means 1, or a tenth of a second's worth if that is more.
	Burst int
}

// PerSecond is the rate; 0 if there is no limit.
func (c Config) PerSecond() float64 {
	if c.Rate == nil {
		return 0
	}
	return *c.Rate
}

// Validate checks the config.
func (c Config) Validate() error {
	switch rate := c.PerSecond(); {
	case !(rate >= 0 && rate <= 1e9): // also for NaN
		return fmt.Errorf("rate %v: use at most 1e9 per second, or 0 for no limit", rate)
	case rate > 0 && rate < 1e-6:
		return fmt.Errorf("rate %v: use at least 1e-6 per second, or 0 for no limit", rate)
	case c.Burst < 0:
		return fmt.Errorf("burst %d: use at least 1, or 0 for the default", c.Burst)
	}
	return nil
}

// Rules is the generic cell rate algorithm (ITU-T I.371), for an owner that has a lock: most programs want [Limiter]. One stamp holds the
// state, the theoretical arrival time; it starts as [math.MinInt64]. Times are nanoseconds since any fixed moment.
type Rules struct {
	interval  int64 // between two calls at the limit; 0 means no limit
	tolerance int64 // how far ahead of the limit a burst may run
}

// NewRules returns the rules of a valid config.
func NewRules(c Config) Rules {
	rate := c.PerSecond()
	if rate == 0 {
		return Rules{}
	}
	burst := cmp.Or(c.Burst, max(1, int(rate/10)))
	interval := int64(math.Ceil(1e9 / rate))
	return Rules{interval: interval, tolerance: stamp.Mul(int64(burst-1), interval)}
}

// Wait is how long from now until the next call conforms; 0 if it does.
func (g Rules) Wait(tat, now int64) int64 {
	if g.interval == 0 || tat <= now {
		return 0
	}
	return max(tat-now-g.tolerance, 0)
}

// Take returns the state after a call at now.
func (g Rules) Take(tat, now int64) int64 {
	if g.interval == 0 {
		return tat
	}
	return stamp.Add(max(tat, now), g.interval)
}

// Undo undoes one Take.
func (g Rules) Undo(tat int64) int64 {
	if tat < stamp.Never+g.interval {
		return stamp.Never
	}
	return tat - g.interval
}

// Limits reports whether there is a limit at all.
func (g Rules) Limits() bool { return g.interval > 0 }

// Divided returns the part of one of n that share the limit, burst included.
func (g Rules) Divided(n int64) Rules {
	if n > 1 {
		g.interval = stamp.Mul(g.interval, n)
	}
	return g
}

// Limiter is a rate limit with bursts. It is safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	rules Rules
	tat   int64
}

// New returns a limiter with a full burst.
func New(cfg Config) (*Limiter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("limiter: %w", err)
	}
	return &Limiter{rules: NewRules(cfg), tat: stamp.Never}, nil
}

// Allow takes a token if there is one. Otherwise it takes nothing and returns how long until there is one.
func (l *Limiter) Allow(now time.Time) (bool, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := stamp.Of(now)
	if wait := l.rules.Wait(l.tat, at); wait > 0 {
		return false, time.Duration(wait)
	}
	l.tat = l.rules.Take(l.tat, at)
	return true, 0
}

// Wait returns how long until Allow has a token; 0 if it has one now. It takes nothing.
func (l *Limiter) Wait(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.rules.Wait(l.tat, stamp.Of(now)))
}

// Return gives back the token of a call that was not made.
func (l *Limiter) Return() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tat = l.rules.Undo(l.tat)
}

// Configure changes the limit. Calls already made still count.
func (l *Limiter) Configure(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("limiter: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = NewRules(cfg)
	return nil
}
