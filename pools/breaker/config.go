package breaker

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Config tunes a breaker. A pointer is a field that can be switched off: nil is the default. The zero value is the default: 50 % failures
// or slow calls of at least 24 within 30 s open it for 5 s, and each time that the probes fail for half as long again, up to 30 s; then 4
// of 5 probes must succeed.
//
// However few calls there are, 8 failures in a row open it as well, or 10 where more than 4 calls can be in flight.
type Config struct {
	// FailurePercent of the completed calls in the window opens the breaker when it is reached. 1 to 100. Nil means 50.
	// Zero means that failures never open it.
	FailurePercent *int
	// SlowPercent of slow calls opens the breaker when it is reached. 1 to 100. Nil means 50. Zero means that
	// slow calls never open it and that a slow probe counts as a success.
	SlowPercent *int
	// SlowAfter is the duration above which a success counts as slow. Nil or zero means that only the
	// outcome [OutcomeSlow] does.
	SlowAfter *time.Duration
	// Window is how far back completed calls count. It has ten buckets. Zero means 30 s. At least 1 s.
	Window time.Duration
	// MinimumCalls is how many completed calls the window must hold before a percentage may open the breaker. The percentage is that of
	// them and of the calls in flight that started after the last answered one. Zero means so
	// many that an independent 5 % of failures does it less than once in 100 months: 24 for 50 % within 30 s, 92 for 25 %.
	MinimumCalls int
	// HungAfter is the age from which a call in flight counts as a failure where that many in a row are as old, or failed; see
	// [Circuit.Judge]. It is never less than twice what answered calls take at the most. Nil means 4 s. Zero means never: a call that hangs
	// counts when it ends.
	HungAfter *time.Duration
	// OpenFor is how long the breaker stays open at first. Zero means 5 s.
	OpenFor time.Duration
	// OpenGrowth multiplies the open time each time that the probes fail: min(OpenFor * OpenGrowth^n, OpenMax).
	// Zero means 1.5. One means no growth.
	OpenGrowth float64
	// OpenMax bounds the grown open time, before jitter. Zero means 30 s, or OpenFor if that is longer.
	OpenMax time.Duration
	// OpenJitter spreads the open time by plus or minus this share, so that a fleet does not probe in step.
	// Nil means 0.2. Zero means none. Below 1.
	OpenJitter *float64
	// Probes is how many calls are let through when the open time is over. Zero means 5. At most 100.
	Probes int
	// ProbesToClose is how many probes must succeed to close the breaker. Zero means four fifths of Probes, rounded up.
	ProbesToClose int
	// ProbeLease is how long a probe may take to report before its slot is given to another. Make it longer than the
	// call's timeout. Zero means 1 min.
	ProbeLease time.Duration
	// Ramp is how long after closing the admitted share grows from 10 % to all. Nil or zero means
	// no ramp.
	Ramp *time.Duration
}

// rampFrom is the share of calls that a ramp admits at its start, in 1/65536.
const rampFrom = rampAll / 10

const rampAll = 1 << 16

// Webhook is for endpoints of customers, which often fail a little: 80 % within 10 min and 5 calls, open for 5 min.
func Webhook() Config {
	return Config{
		FailurePercent: new(80), SlowPercent: new(80), Window: 10 * time.Minute, MinimumCalls: 5, OpenFor: 5 * time.Minute,
		OpenGrowth: 1, OpenMax: 15 * time.Minute,
	}
}

// Critical is for a destination without which nothing works: it opens late, at 60 %.
func Critical() Config { return Config{FailurePercent: new(60), SlowPercent: new(60)} }

// Optional is for a destination that can be missed: it opens early, at 25 %.
func Optional() Config { return Config{FailurePercent: new(25), SlowPercent: new(25)} }

// FailurePercentFor derives a threshold from the error rate that is normal for the destination (0.02 is 2 %): ten times as
// high, but never below 25 % (too nervous) nor above 80 % (too late).
func FailurePercentFor(normal float64) int {
	percent := math.Ceil(normal * 1000)
	if !(percent > 25) { // also for NaN
		return 25
	}
	return int(min(percent, 80))
}

// WithDefaults fills in what zero means.
func (c Config) WithDefaults() Config {
	c.FailurePercent = cmp.Or(c.FailurePercent, new(50))
	c.SlowPercent = cmp.Or(c.SlowPercent, new(50))
	c.SlowAfter = cmp.Or(c.SlowAfter, new(time.Duration))
	c.Window = cmp.Or(c.Window, 30*time.Second)
	c.MinimumCalls = cmp.Or(c.MinimumCalls, minimumFor(c.lowest(), c.Window))
	c.HungAfter = cmp.Or(c.HungAfter, new(4*time.Second))
	c.OpenFor = cmp.Or(c.OpenFor, 5*time.Second)
	c.OpenGrowth = cmp.Or(c.OpenGrowth, 1.5)
	c.OpenMax = cmp.Or(c.OpenMax, max(c.OpenFor, 30*time.Second))
	c.OpenJitter = cmp.Or(c.OpenJitter, new(0.2))
	c.Probes = cmp.Or(c.Probes, 5)
	c.ProbesToClose = cmp.Or(c.ProbesToClose, (4*c.Probes+4)/5)
	c.ProbeLease = cmp.Or(c.ProbeLease, time.Minute)
	c.Ramp = cmp.Or(c.Ramp, new(time.Duration))
	return c
}

// lowest is the lower of the two thresholds, of those that are not switched off.
func (c *Config) lowest() int {
	switch failures, slow := *c.FailurePercent, *c.SlowPercent; {
	case failures <= 0:
		return slow
	case slow <= 0:
		return failures
	default:
		return min(failures, slow)
	}
}

// Over fills the zero fields of c from base.
func (c Config) Over(base Config) Config {
	return Config{
		FailurePercent: cmp.Or(c.FailurePercent, base.FailurePercent),
		SlowPercent:    cmp.Or(c.SlowPercent, base.SlowPercent),
		SlowAfter:      cmp.Or(c.SlowAfter, base.SlowAfter),
		Window:         cmp.Or(c.Window, base.Window),
		MinimumCalls:   cmp.Or(c.MinimumCalls, base.MinimumCalls),
		HungAfter:      cmp.Or(c.HungAfter, base.HungAfter),
		OpenFor:        cmp.Or(c.OpenFor, base.OpenFor),
		OpenGrowth:     cmp.Or(c.OpenGrowth, base.OpenGrowth),
		OpenMax:        cmp.Or(c.OpenMax, base.OpenMax),
		OpenJitter:     cmp.Or(c.OpenJitter, base.OpenJitter),
		Probes:         cmp.Or(c.Probes, base.Probes),
		ProbesToClose:  cmp.Or(c.ProbesToClose, base.ProbesToClose),
		ProbeLease:     cmp.Or(c.ProbeLease, base.ProbeLease),
		Ramp:           cmp.Or(c.Ramp, base.Ramp),
	}
}

// Validate checks a config with its defaults filled in.
func (c Config) Validate() error {
	switch {
	case *c.FailurePercent < 0 || *c.FailurePercent > 100:
		return fmt.Errorf("failure percent %d: use 1 to 100, or 0 for never", *c.FailurePercent)
	case *c.SlowPercent < 0 || *c.SlowPercent > 100:
		return fmt.Errorf("slow percent %d: use 1 to 100, or 0 for never", *c.SlowPercent)
	case *c.SlowAfter < 0:
		return fmt.Errorf("slow after %v: use a positive duration, or 0 for never", *c.SlowAfter)
	case *c.Ramp < 0:
		return fmt.Errorf("ramp %v: use a positive duration, or 0 for none", *c.Ramp)
	case c.Window < time.Second:
		return fmt.Errorf("window %v: use at least 1s", c.Window)
	case c.MinimumCalls < 1:
		return fmt.Errorf("minimum calls %d: use at least 1", c.MinimumCalls)
	case *c.HungAfter < 0:
		return fmt.Errorf("hung after %v: use a positive duration, or 0 for never", *c.HungAfter)
	case c.OpenFor < time.Millisecond:
		return fmt.Errorf("open for %v: use at least 1ms", c.OpenFor)
	case !(c.OpenGrowth >= 1 && c.OpenGrowth <= 100):
		return fmt.Errorf("open growth %v: use 1 (none) to 100", c.OpenGrowth)
	case c.OpenMax < c.OpenFor:
		return fmt.Errorf("open max %v is below open for %v: raise it", c.OpenMax, c.OpenFor)
	case !(*c.OpenJitter >= 0 && *c.OpenJitter < 1):
		return fmt.Errorf("open jitter %v: use a share below 1, or 0 for none", *c.OpenJitter)
	case c.Probes < 1 || c.Probes > 100:
		return fmt.Errorf("probes %d: use 1 to 100", c.Probes)
	case c.ProbesToClose < 1 || c.ProbesToClose > c.Probes:
		return fmt.Errorf("probes to close %d: use 1 to the number of probes, %d", c.ProbesToClose, c.Probes)
	case c.ProbeLease < time.Millisecond:
		return fmt.Errorf("probe lease %v: use at least 1ms", c.ProbeLease)
	}
	return nil
}

// openTime is how long to stay open after n failed rounds of probes. u is uniform in [0,1).
func (c *Config) openTime(n int, u float64) int64 {
	d := min(float64(c.OpenFor)*math.Pow(c.OpenGrowth, float64(n)), float64(c.OpenMax))
	d *= 1 + *c.OpenJitter*(2*u-1)
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(int64(d), 1)
}

// Rules is a valid [Config] whose defaults are filled in.
type Rules struct {
	Config
	failures, slow  int   // percent; 0 for never
	slowAfter, ramp int64 // 0 for none
	hungAfter       int64 // 0 for never
	width           int64 // of a bucket
	random          func() float64
}

// NewRules returns the rules of a valid config whose defaults are filled in. random returns numbers uniform in [0,1), for jitter.
func NewRules(c Config, random func() float64) Rules {
	return Rules{
		Config: c, failures: *c.FailurePercent, slow: *c.SlowPercent, slowAfter: int64(*c.SlowAfter), ramp: int64(*c.Ramp), hungAfter: int64(*c.HungAfter),
		width: int64(c.Window) / buckets, random: random,
	}
}
