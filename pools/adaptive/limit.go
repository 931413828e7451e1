package adaptive

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// LimitConfig lets a limit on concurrency find itself between a floor and what is configured, which is where it starts: additive increase,
// multiplicative decrease. That is how competing senders arrive at a fair share of a capacity that none of them knows (D.-M. Chiu and
// R. Jain, Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks, 1989; V. Jacobson, Congestion Avoidance
// and Control, 1988). Share and condition of the increase are those of AIMDLimit in Netflix's concurrency-limits.
//
//   - When as many calls as the limit allows have succeeded, each while at least half of the limit was in use, it rises by Increase.
//   - When a call fails, is slow or is throttled, the limit is multiplied by Decrease and falls by at least one. That happens once per
//     round: calls that began before the limit was lowered tell of the limit before it, and are not counted.
//
// The zero value adapts nothing.
type LimitConfig struct {
	// Min is the floor. Nil or zero means that nothing is adapted. Above Max it counts as that.
	Min *int
	// Max is what is configured. Zero means that somebody else says it: a destination its Concurrency, a kind its Bulkhead. A [Limit] needs it.
	Max int
	// Increase is how many calls more are allowed after each round that went well. Zero means 1.
	Increase int
	// Decrease is what share of the limit is left after a round that did not. Zero means 0.9. 0.1 to 0.99.
	Decrease float64
	// SlowAfter is the duration above which a success counts as slow. Nil means the breaker's own SlowAfter; zero, or where there is
	// none, that only the outcome [breaker.OutcomeSlow] does.
	SlowAfter *time.Duration
}

// Over fills the zero fields of c from base.
func (c LimitConfig) Over(base LimitConfig) LimitConfig {
	return LimitConfig{
		Min: cmp.Or(c.Min, base.Min), Max: cmp.Or(c.Max, base.Max), Increase: cmp.Or(c.Increase, base.Increase), Decrease: cmp.Or(c.Decrease, base.Decrease),
		SlowAfter: cmp.Or(c.SlowAfter, base.SlowAfter),
	}
}

// Adapts reports whether there is anything to adapt.
func (c LimitConfig) Adapts() bool { return c.Min != nil && *c.Min > 0 }

// WithDefaults fills in what zero means.
func (c LimitConfig) WithDefaults() LimitConfig {
	c.Increase = cmp.Or(c.Increase, 1)
	c.Decrease = cmp.Or(c.Decrease, 0.9)
	return c
}

// Validate checks a config whose defaults are filled in.
func (c LimitConfig) Validate() error {
	switch {
	case c.Min != nil && *c.Min < 0:
		return fmt.Errorf("min %d: use at least 1, or 0 for a limit that stays", *c.Min)
	case c.Max < 0 || c.Max > math.MaxInt32:
		return fmt.Errorf("max %d: use at least 1, or 0 where the limit has another name", c.Max)
	case c.SlowAfter != nil && *c.SlowAfter < 0:
		return fmt.Errorf("slow after %v: use a positive duration, or 0 for never", *c.SlowAfter)
	case c.Increase < 1 || c.Increase > 1000:
		return fmt.Errorf("increase %d: use 1 to 1000", c.Increase)
	case !(c.Decrease >= 0.1 && c.Decrease <= 0.99):
		return fmt.Errorf("decrease %v: use 0.1 to 0.99", c.Decrease)
	}
	return nil
}

// LimitRules is a [LimitConfig] that adapts.
type LimitRules struct {
	lowest, highest, increase uint32
	decrease                  uint64 // in thousandths
	slow                      int64  // 0 for never
}

// Slows reports whether a success may count as slow.
func (r *LimitRules) Slows() bool { return r.slow > 0 }

// NewLimitRules returns nil if c adapts nothing, or has no Max.
func NewLimitRules(c LimitConfig) *LimitRules {
	if !c.Adapts() || c.Max <= 0 {
		return nil
	}
	return &LimitRules{
		lowest: uint32(min(*c.Min, c.Max)), highest: uint32(c.Max), increase: uint32(c.Increase), //nolint:gosec // validated
		decrease: uint64(math.Round(c.Decrease * 1000)), slow: int64(*cmp.Or(c.SlowAfter, new(time.Duration))),
	}
}

// LimitState is the state of an adaptive limit, for an owner that has a lock: most programs want [Limit]. The zero value stands at the
// highest. Times are nanoseconds since any fixed moment.
type LimitState struct {
	lowered uint32 // the limit; 0 while it stands at the highest
	earned  uint32 // successes towards the next increase
	cut     int64  // when it was last lowered
}

// Lowered reports whether the limit is below the highest.
func (a *LimitState) Lowered() bool { return a.lowered > 0 }

// Limit is never outside what the rules allow, also after they have changed.
func (a *LimitState) Limit(r *LimitRules) uint32 {
	if a.lowered == 0 {
		return r.highest
	}
	return max(min(a.lowered, r.highest), r.lowest)
}

// Record tells of a call that ended at now while inUse were out, itself among them.
func (a *LimitState) Record(r *LimitRules, start, now int64, o breaker.Outcome, inUse uint32) {
	switch {
	case o == breaker.OutcomeFailure, o == breaker.OutcomeSlow, o == breaker.OutcomeSuccess && r.slow > 0 && now-start > r.slow:
		a.Lower(r, start, now)
	case o == breaker.OutcomeSuccess && a.lowered > 0 && start > a.cut && 2*uint64(inUse) >= uint64(a.Limit(r)):
		if a.earned++; a.earned >= a.Limit(r) {
			a.set(r, a.Limit(r)+r.increase)
		}
	}
}

// Lower takes a sign of congestion from a call that began at start.
func (a *LimitState) Lower(r *LimitRules, start, now int64) {
	if a.lowered > 0 && start <= a.cut {
		return
	}
	limit := a.Limit(r)
	a.set(r, max(min(uint32(uint64(limit)*r.decrease/1000), limit-1), r.lowest)) //nolint:gosec // below limit
	a.cut = now
}

func (a *LimitState) set(r *LimitRules, limit uint32) {
	a.earned = 0
	if a.lowered = limit; limit >= r.highest {
		*a = LimitState{}
	}
}

// Limit is the limit of an [LimitConfig] by itself, for what has calls to bound and is no destination. It is safe for
// concurrent use.
type Limit struct {
	mu    sync.Mutex
	rules LimitRules
	a     LimitState
}

// NewLimit returns a limit that stands at its Max.
func NewLimit(cfg LimitConfig) (*Limit, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("adaptive limit: %w", err)
	}
	rules := NewLimitRules(cfg)
	if rules == nil {
		return nil, fmt.Errorf("adaptive limit up to %d: it and min have to be at least 1", cfg.Max)
	}
	return &Limit{rules: *rules}, nil
}

// Done tells how a call went that ran from start to now beside others, inUse of them in all, and returns the limit from now on.
func (l *Limit) Done(start, now time.Time, o breaker.Outcome, inUse int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.a.Record(&l.rules, stamp.Of(start), stamp.Of(now), o, uint32(max(min(inUse, math.MaxInt32), 0))) //nolint:gosec // bounded right here
	return int(l.a.Limit(&l.rules))
}

// Limit is how many calls are allowed now.
func (l *Limit) Limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.a.Limit(&l.rules))
}
