package pools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/pools/adaptive"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/limiter"
)

// defaultDrainRate is how many deferred jobs per second come back to a destination of which nothing else is known.
const defaultDrainRate = 10.0

// DestinationConfig tunes what one destination may be sent. In the configuration of one name, what is zero or nil is taken from the default;
// a pointer is a field that can be switched off there: new(0), new(false).
type DestinationConfig struct {
	// Breaker opens when the destination is sick. The zero value has sensible defaults.
	Breaker breaker.Config
	// Concurrency is how many calls may run at once. Nil or zero means no limit.
	Concurrency *int
	// Adaptive lets the limit on concurrency find itself. The zero value keeps it where it is.
	Adaptive adaptive.LimitConfig
	// Timeout lets the timeout of calls follow how long they take. Ask for it with [Permit.Timeout]. The zero value has none.
	Timeout adaptive.TimeoutConfig
	// Lane says whether the destination is in the registry's slow lane while it is slow. Nil means true. False is for what is slow by nature.
	Lane *bool
	// Shared lets the destination take part in what other workers know: see [Destinations.Share]. Nil means false.
	Shared *bool
	// Rate limits calls per second. The zero value limits nothing.
	Rate limiter.Config
	// Budget bounds retries. The zero value is 10 % of the successes plus 3 per second.
	Budget budget.Config
	// DrainRate is how many deferred jobs per second come back. Nil or zero means what the destination was seen to
	// answer, at most Rate, or a guess while nothing is known. See [Destinations.Defer].
	DrainRate *float64
	// DeferFloor is the shortest delay of a deferred job. Zero means 100 ms: where the end of a wait cannot be known it is 1 s anyway.
	DeferFloor time.Duration
	// DeferCap is the longest. Zero means 15 min. At least twice the floor.
	DeferCap time.Duration
}

// over fills the zero fields of c from base.
func (c DestinationConfig) over(base DestinationConfig) DestinationConfig {
	return DestinationConfig{
		Breaker:     c.Breaker.Over(base.Breaker),
		Concurrency: cmp.Or(c.Concurrency, base.Concurrency),
		Adaptive:    c.Adaptive.Over(base.Adaptive),
		Timeout:     c.Timeout.Over(base.Timeout),
		Lane:        cmp.Or(c.Lane, base.Lane),
		Shared:      cmp.Or(c.Shared, base.Shared),
		Rate:        limiter.Config{Rate: cmp.Or(c.Rate.Rate, base.Rate.Rate), Burst: cmp.Or(c.Rate.Burst, base.Rate.Burst)},
		Budget:      c.Budget.Over(base.Budget),
		DrainRate:   cmp.Or(c.DrainRate, base.DrainRate),
		DeferFloor:  cmp.Or(c.DeferFloor, base.DeferFloor),
		DeferCap:    cmp.Or(c.DeferCap, base.DeferCap),
	}
}

// key tells configurations apart by what they say, where pointers to equal values are equal.
func (c DestinationConfig) key() string {
	text, err := json.Marshal(c)
	if err != nil { // a number that is none: validate refuses it
		return err.Error()
	}
	return string(text)
}

func (c DestinationConfig) withDefaults() DestinationConfig {
	c.Breaker = c.Breaker.WithDefaults()
	c.Concurrency = cmp.Or(c.Concurrency, new(0))
	c.Adaptive = c.Adaptive.WithDefaults()
	c.Timeout = c.Timeout.WithDefaults()
	c.Lane = cmp.Or(c.Lane, new(true))
	c.Shared = cmp.Or(c.Shared, new(false))
	c.Budget = c.Budget.WithDefaults()
	c.DrainRate = cmp.Or(c.DrainRate, new(0.0))
	c.DeferFloor = cmp.Or(c.DeferFloor, 100*time.Millisecond)
	c.DeferCap = cmp.Or(c.DeferCap, 15*time.Minute)
	return c
}

func (c DestinationConfig) validate() error {
	if err := c.Breaker.Validate(); err != nil {
		return fmt.Errorf("breaker: %w", err)
	}
	if err := c.Adaptive.Validate(); err != nil {
		return fmt.Errorf("adaptive: %w", err)
	}
	if err := c.Timeout.Validate(); err != nil {
		return fmt.Errorf("timeout: %w", err)
	}
	if err := c.Rate.Validate(); err != nil {
		return fmt.Errorf("rate limit: %w", err)
	}
	if err := c.Budget.Validate(); err != nil {
		return fmt.Errorf("budget: %w", err)
	}
	switch {
	case *c.Concurrency < 0 || *c.Concurrency > 1_000_000:
		return fmt.Errorf("concurrency %d: use at most 1000000, or 0 for no limit", *c.Concurrency)
	case c.Adaptive.Max != 0:
		return fmt.Errorf("adaptive max %d: leave it out, since the concurrency of %d says it", c.Adaptive.Max, *c.Concurrency)
	case c.Adaptive.Adapts() && *c.Concurrency == 0:
		return fmt.Errorf("adaptive min %d: set a concurrency, from which it can be lowered", *c.Adaptive.Min)
	case !(*c.DrainRate == 0 || *c.DrainRate >= 1e-3 && *c.DrainRate <= 1e6):
		return fmt.Errorf("drain rate %v: use 0.001 to 1e6 per second, or 0 to measure it", *c.DrainRate)
	case c.DeferFloor < time.Millisecond:
		return fmt.Errorf("defer floor %v: use at least 1ms", c.DeferFloor)
	case c.DeferCap < 2*c.DeferFloor:
		return fmt.Errorf("defer cap %v: use at least twice the floor of %v", c.DeferCap, c.DeferFloor)
	}
	return nil
}

// DestinationsConfig tunes a registry.
type DestinationsConfig struct {
	// Default holds for every destination.
	Default DestinationConfig
	// ByName holds for the destination of that name, which is normalised. What is zero or nil is taken from Default.
	ByName map[string]DestinationConfig
	// SlowLane keeps slow destinations from holding every place. The zero value does not.
	SlowLane SlowLaneConfig
	// Rate limits all destinations together. A call that another limit refuses takes nothing from it.
	Rate limiter.Config
	// Max is how many destinations are remembered; beyond that newcomers share one. Zero means 100,000.
	Max int
	// IdleAfter is how long an unused, healthy destination is remembered. Zero means 10 min. It is never
	// forgotten within its breaker's window.
	IdleAfter time.Duration
	// OnTransition is called after each transition of any breaker: outside all locks, one at a time and in order. It may call
	// back and may panic. May be nil. Configure does not change it.
	OnTransition func(breaker.Transition)
	// Random returns numbers uniform in [0,1), for jitter. It must be safe for concurrent use. Nil means math/rand/v2.
	// Configure does not change it.
	Random func() float64
}

func (c DestinationsConfig) withDefaults() DestinationsConfig {
	c.SlowLane = c.SlowLane.WithDefaults()
	c.Max = cmp.Or(c.Max, 100_000)
	c.IdleAfter = cmp.Or(c.IdleAfter, 10*time.Minute)
	if c.Random == nil {
		c.Random = rand.Float64
	}
	return c
}

func (c DestinationsConfig) validate() error {
	if err := c.Rate.Validate(); err != nil {
		return fmt.Errorf("total rate limit: %w", err)
	}
	if err := c.SlowLane.validate(); err != nil {
		return fmt.Errorf("slow lane: %w", err)
	}
	switch {
	case c.Max < 1:
		return fmt.Errorf("max %d: use at least 1", c.Max)
	case c.IdleAfter < 0:
		return fmt.Errorf("idle after %v: use a positive duration, or 0 for the default", c.IdleAfter)
	}
	return nil
}

// table is a DestinationsConfig, resolved. It is immutable.
type table struct {
	base   DestinationConfig
	def    *settings
	byName map[string]*settings
	max    int64
	idle   time.Duration
	total  *limiter.Limiter // nil if there is no such limit
	lane   *lane            // likewise
	random func() float64
}

func newTable(c DestinationsConfig, total *limiter.Limiter, held *atomic.Int64, random func() float64) (*table, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Rate.PerSecond() == 0 {
		total = nil
	}
	t := &table{
		base: c.Default, byName: map[string]*settings{}, max: int64(c.Max), idle: c.IdleAfter, total: total, random: random,
	}
	if c.SlowLane.Slots > 0 {
		t.lane = &lane{slots: int64(c.SlowLane.Slots), over: int64(c.SlowLane.Over), held: held}
	}
	var err error
	if t.def, err = t.resolve(DestinationConfig{}); err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	equal := map[string]*settings{} // thousands of overrides are often all the same
	for raw, over := range c.ByName {
		name := NormalizeDestination(raw)
		if name == "" || t.byName[name] != nil {
			return nil, fmt.Errorf("by name %q: name is empty or given twice once normalised to %q: keep one", raw, name)
		}
		key := over.key()
		if equal[key] == nil {
			if equal[key], err = t.resolve(over); err != nil {
				return nil, fmt.Errorf("by name %q: %w", raw, err)
			}
		}
		t.byName[name] = equal[key]
	}
	return t, nil
}

func (t *table) of(name string) *settings {
	if s, ok := t.byName[name]; ok {
		return s
	}
	return t.def
}

// resolve fills the zero fields of c from the default, and those that are still zero with what zero means.
func (t *table) resolve(c DestinationConfig) (*settings, error) {
	c = c.over(t.base).withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	limit := c.Adaptive
	limit.Max, limit.SlowAfter = *c.Concurrency, cmp.Or(limit.SlowAfter, c.Breaker.SlowAfter)
	s := &settings{
		breaker: breaker.NewRules(c.Breaker, t.random), concurrency: uint32(*c.Concurrency),
		rate: limiter.NewRules(c.Rate), rateLimit: c.Rate.PerSecond(), budget: budget.NewRules(c.Budget), drain: *c.DrainRate,
		floor: int64(c.DeferFloor), cap: int64(c.DeferCap), total: t.total, rand: t.random,
		limit: adaptive.NewLimitRules(limit), timeout: adaptive.NewTimeoutRules(c.Timeout), shared: *c.Shared,
	}
	if *c.Lane {
		s.lane = t.lane
	}
	return s, nil
}
