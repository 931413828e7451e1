package budget

import (
	"cmp"
	"fmt"
	"time"
)

// Form names a way to bound retries.
type Form string

// The forms.
const (
	// FormFinagle allows retries as a share of the successes in a window, plus a floor per second (Finagle's RetryBudget).
	FormFinagle Form = "finagle"
	// FormGRPC allows retries while more than half of the tokens are left. A failure costs one, a success brings back a
	// tenth (gRFC A6).
	FormGRPC Form = "grpc"
	// FormAWS lets each retry spend from a quota that successes refill (AWS SDKs, standard mode of 2026).
	FormAWS Form = "aws"
	// FormNone allows every retry.
	FormNone Form = "none"
)

// Config tunes a retry budget. The zero value is 10 % of the successes in 10 s plus 3 retries per second.
type Config struct {
	// Form picks the algorithm; the other fields belong to one form each. Empty means [FormFinagle].
	Form Form
	// Ratio of retries to successes (Finagle), or what a success brings back (gRPC). Zero means 0.1. At most 1.
	Ratio float64
	// Floor is how many retries per second are allowed without any success (Finagle). Nil means 3. Zero means none.
	Floor *float64
	// Window is how long a success and a retry count (Finagle), in five slices: they leave at most a fifth of it early. Zero
	// means 10 s. 1 s to 1 h.
	Window time.Duration
	// Tokens is how many there are at most and at first. Zero means 10 (gRPC) or 500 (AWS).
	Tokens int
	// Cost of a retry after a transient error (AWS). Zero means 14.
	Cost int
	// ThrottleCost of a retry after a throttle (AWS). Zero means 5.
	ThrottleCost int
	// Refund for each success of a first try (AWS). A retry that succeeds brings back what it cost. Zero means 1.
	Refund int
}

// WithDefaults fills in what zero means.
func (c Config) WithDefaults() Config {
	c.Form = cmp.Or(c.Form, FormFinagle)
	c.Ratio = cmp.Or(c.Ratio, 0.1)
	c.Floor = cmp.Or(c.Floor, new(3.0))
	c.Window = cmp.Or(c.Window, 10*time.Second)
	tokens := 10
	if c.Form == FormAWS {
		tokens = 500
	}
	c.Tokens = cmp.Or(c.Tokens, tokens)
	c.Cost = cmp.Or(c.Cost, 14)
	c.ThrottleCost = cmp.Or(c.ThrottleCost, 5)
	c.Refund = cmp.Or(c.Refund, 1)
	return c
}

// Over fills the zero fields of c from base, unless c picks another form.
func (c Config) Over(base Config) Config {
	if c.Form != "" && c.Form != cmp.Or(base.Form, FormFinagle) {
		return c
	}
	return Config{
		Form: base.Form, Ratio: cmp.Or(c.Ratio, base.Ratio), Floor: cmp.Or(c.Floor, base.Floor),
		Window: cmp.Or(c.Window, base.Window), Tokens: cmp.Or(c.Tokens, base.Tokens), Cost: cmp.Or(c.Cost, base.Cost),
		ThrottleCost: cmp.Or(c.ThrottleCost, base.ThrottleCost), Refund: cmp.Or(c.Refund, base.Refund),
	}
}

const maxTokens = 1_000_000

// Validate checks a config whose defaults are filled in.
func (c Config) Validate() error {
	switch c.Form {
	case FormFinagle, FormGRPC, FormAWS, FormNone:
	default:
		return fmt.Errorf("form %q: use %s, %s, %s or %s", c.Form, FormFinagle, FormGRPC, FormAWS, FormNone)
	}
	switch {
	case !(c.Ratio >= 0.001 && c.Ratio <= 1):
		return fmt.Errorf("ratio %v: use 0.001 to 1", c.Ratio)
	case !(*c.Floor >= 0 && *c.Floor <= 1e5):
		return fmt.Errorf("floor %v: use at most 1e5 per second, or 0 for none", *c.Floor)
	case c.Window < time.Second || c.Window > time.Hour:
		return fmt.Errorf("window %v: use 1s to 1h", c.Window)
	case c.Tokens < 1 || c.Tokens > maxTokens:
		return fmt.Errorf("tokens %d: use 1 to %d", c.Tokens, maxTokens)
	case c.Cost < 1 || c.Cost > maxTokens, c.ThrottleCost < 1 || c.ThrottleCost > maxTokens:
		return fmt.Errorf("cost %d, throttle cost %d: use 1 to %d", c.Cost, c.ThrottleCost, maxTokens)
	case c.Refund < 1 || c.Refund > maxTokens:
		return fmt.Errorf("refund %d: use 1 to %d", c.Refund, maxTokens)
	}
	return nil
}
