package adaptive

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
)

// TimeoutConfig lets a timeout follow how long calls take: the 99th percentile of recent calls times a margin, within a floor and a
// ceiling. So one call that hangs costs little more than one that is slow, and nobody has to know beforehand what slow is.
//
// Calls that were answered count. A call that failed counts if it took longer than the percentile: one that the timeout has cut off would have
// taken longer still, and counts as long as it ran, so that a timeout that cuts off more than one in a hundred calls rises, up to its
// ceiling, and never falls because of them. Quick failures and what is [breaker.OutcomeIgnored] say nothing. The zero value adapts nothing.
type TimeoutConfig struct {
	// Floor is the shortest timeout. Nil or zero means that nothing is adapted. At least 1 ms.
	Floor *time.Duration
	// Ceiling is the longest, and the timeout until enough is known. Zero means that there is none: somebody else's timeout holds.
	Ceiling time.Duration
	// Margin multiplies the percentile. Zero means 2. 1 to 100.
	Margin float64
	// Samples is how many calls have to be known. Zero means 20. At most 400.
	Samples int
}

// Over fills the zero fields of c from base.
func (c TimeoutConfig) Over(base TimeoutConfig) TimeoutConfig {
	return TimeoutConfig{
		Floor: cmp.Or(c.Floor, base.Floor), Ceiling: cmp.Or(c.Ceiling, base.Ceiling), Margin: cmp.Or(c.Margin, base.Margin),
		Samples: cmp.Or(c.Samples, base.Samples),
	}
}

// Adapts reports whether there is anything to adapt.
func (c TimeoutConfig) Adapts() bool { return c.Floor != nil && *c.Floor > 0 }

// WithDefaults fills in what zero means.
func (c TimeoutConfig) WithDefaults() TimeoutConfig {
	c.Floor = cmp.Or(c.Floor, new(time.Duration))
	c.Margin = cmp.Or(c.Margin, 2)
	c.Samples = cmp.Or(c.Samples, 20)
	return c
}

// Validate checks a config whose defaults are filled in.
func (c TimeoutConfig) Validate() error {
	switch {
	case *c.Floor < 0 || *c.Floor > 0 && *c.Floor < time.Millisecond:
		return fmt.Errorf("floor %v: use at least 1ms, or 0 for a timeout that stays", *c.Floor)
	case c.Ceiling < 0 || c.Ceiling > 0 && c.Ceiling < *c.Floor:
		return fmt.Errorf("ceiling %v: use at least the floor of %v, or 0 for none", c.Ceiling, *c.Floor)
	case !(c.Margin >= 1 && c.Margin <= 100):
		return fmt.Errorf("margin %v: use 1 to 100", c.Margin)
	case c.Samples < 1 || c.Samples > remembered/2:
		return fmt.Errorf("samples %d: use 1 to %d", c.Samples, remembered/2)
	}
	return nil
}

// TimeoutRules is an TimeoutConfig that adapts.
type TimeoutRules struct {
	floor, ceiling int64
	margin         float64
	samples        uint32
}

// NewTimeoutRules returns nil if c adapts nothing.
func NewTimeoutRules(c TimeoutConfig) *TimeoutRules {
	if !c.Adapts() {
		return nil
	}
	r := &TimeoutRules{floor: int64(*c.Floor), ceiling: int64(c.Ceiling), margin: c.Margin, samples: uint32(c.Samples)} //nolint:gosec // validated
	if r.ceiling == 0 {
		r.ceiling = math.MaxInt64
	}
	return r
}

// Timeout is what follows from h, which may be nil.
func (r *TimeoutRules) Timeout(h *Durations) int64 {
	if h == nil || h.total < r.samples {
		return r.ceiling
	}
	t := float64(h.p99()) * r.margin
	if t >= float64(r.ceiling) {
		return r.ceiling
	}
	return max(int64(t), r.floor)
}

// Durations is a histogram of the last some hundred calls in 200 bytes: four buckets for each doubling, from a quarter of a millisecond to
// two hours. Old calls fade: when there are too many, all counts are halved.
type Durations struct {
	total  uint32
	counts [96]uint16
}

const (
	remembered = 800
	grain      = 18 // the unit is 2^18 ns
)

// Record adds a call if it says something.
func (h *Durations) Record(took int64, o breaker.Outcome) {
	switch {
	case o == breaker.OutcomeSuccess, o == breaker.OutcomeSlow:
	case o == breaker.OutcomeFailure && h.total > 0 && took > h.p99():
	default:
		return
	}
	h.counts[bucket(took)]++
	if h.total++; h.total < remembered {
		return
	}
	h.total = 0
	for i := range h.counts {
		h.counts[i] /= 2
		h.total += uint32(h.counts[i])
	}
}

// p99 is a duration that at most one in a hundred calls exceeded, rounded up.
func (h *Durations) p99() int64 {
	above := uint32(0)
	for i := len(h.counts) - 1; i >= 0; i-- {
		if above += uint32(h.counts[i]); above > h.total/100 {
			return bucketEnd(i)
		}
	}
	return 0
}

func bucket(took int64) int {
	v := uint64(max(took, 0)) >> grain //nolint:gosec // not negative
	if v < 4 {
		return int(v)
	}
	e := bits.Len64(v) - 1
	return min(4*(e-1)+int(v>>(e-2)&3), len(Durations{}.counts)-1) //nolint:gosec // two bits
}

// bucketEnd is where bucket i ends; the last one does not.
func bucketEnd(i int) int64 {
	switch {
	case i < 4:
		return int64(i+1) << grain
	case i == len(Durations{}.counts)-1:
		return math.MaxInt64
	}
	return int64(4+i%4+1) << (i/4 - 1 + grain)
}

// Timeout is the timeout of an [TimeoutConfig] by itself. It is safe for concurrent use.
type Timeout struct {
	mu    sync.Mutex
	rules *TimeoutRules
	took  Durations
}

// NewTimeout returns a timeout that stands at its ceiling, which it has to have.
func NewTimeout(cfg TimeoutConfig) (*Timeout, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("adaptive timeout: %w", err)
	}
	if !cfg.Adapts() || cfg.Ceiling == 0 {
		return nil, fmt.Errorf("adaptive timeout of %v to %v: both are required", *cfg.Floor, cfg.Ceiling)
	}
	return &Timeout{rules: NewTimeoutRules(cfg)}, nil
}

// Record tells how long a call took, and how it went.
func (t *Timeout) Record(took time.Duration, o breaker.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took.Record(int64(took), o)
}

// Timeout is how long a call may take that starts now.
func (t *Timeout) Timeout() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Duration(t.rules.Timeout(&t.took))
}
