package pools

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// BudgetForm names a way to bound retries.
type BudgetForm string

// The forms.
const (
	// BudgetFormFinagle allows retries as a share of the successes in a window, plus a floor per second (Finagle's RetryBudget).
	BudgetFormFinagle BudgetForm = "finagle"
	// BudgetFormGRPC allows retries while more than half of the tokens are left. A failure costs one, a success brings back a
	// tenth (gRFC A6).
	BudgetFormGRPC BudgetForm = "grpc"
	// BudgetFormAWS lets each retry spend from a quota that successes refill (AWS SDKs, standard mode of 2026).
	BudgetFormAWS BudgetForm = "aws"
	// BudgetFormNone allows every retry.
	BudgetFormNone BudgetForm = "none"
)

// BudgetConfig tunes a retry budget. The zero value is 10 % of the successes in 10 s plus 3 retries per second.
type BudgetConfig struct {
	// Form picks the algorithm; the other fields belong to one form each. Empty means [BudgetFormFinagle].
	Form BudgetForm
	// Ratio of retries to successes (Finagle), or what a success brings back (gRPC). Zero means 0.1. At most 1.
	Ratio float64
	// Floor is how many retries per second are allowed without any success (Finagle). Zero means 3. Negative means none.
	Floor float64
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

func (c BudgetConfig) withDefaults() BudgetConfig {
	c.Form = cmp.Or(c.Form, BudgetFormFinagle)
	c.Ratio = cmp.Or(c.Ratio, 0.1)
	c.Floor = max(cmp.Or(c.Floor, 3), 0)
	c.Window = cmp.Or(c.Window, 10*time.Second)
	tokens := 10
	if c.Form == BudgetFormAWS {
		tokens = 500
	}
	c.Tokens = cmp.Or(c.Tokens, tokens)
	c.Cost = cmp.Or(c.Cost, 14)
	c.ThrottleCost = cmp.Or(c.ThrottleCost, 5)
	c.Refund = cmp.Or(c.Refund, 1)
	return c
}

// over fills the zero fields of c from base, unless c picks another form.
func (c BudgetConfig) over(base BudgetConfig) BudgetConfig {
	if c.Form != "" && c.Form != cmp.Or(base.Form, BudgetFormFinagle) {
		return c
	}
	return BudgetConfig{
		Form: base.Form, Ratio: cmp.Or(c.Ratio, base.Ratio), Floor: cmp.Or(c.Floor, base.Floor),
		Window: cmp.Or(c.Window, base.Window), Tokens: cmp.Or(c.Tokens, base.Tokens), Cost: cmp.Or(c.Cost, base.Cost),
		ThrottleCost: cmp.Or(c.ThrottleCost, base.ThrottleCost), Refund: cmp.Or(c.Refund, base.Refund),
	}
}

const maxTokens = 1_000_000

func (c BudgetConfig) validate() error {
	switch c.Form {
	case BudgetFormFinagle, BudgetFormGRPC, BudgetFormAWS, BudgetFormNone:
	default:
		return fmt.Errorf("form %q: use %s, %s, %s or %s", c.Form, BudgetFormFinagle, BudgetFormGRPC, BudgetFormAWS, BudgetFormNone)
	}
	switch {
	case !(c.Ratio >= 0.001 && c.Ratio <= 1):
		return fmt.Errorf("ratio %v: use 0.001 to 1", c.Ratio)
	case !(c.Floor <= 1e5):
		return fmt.Errorf("floor %v: use at most 1e5 per second, or a negative number for none", c.Floor)
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

// Budget bounds retries to one destination. It is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	rules budgetRules
	a     allowance
}

// NewBudget returns a full budget.
func NewBudget(cfg BudgetConfig) (*Budget, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	return &Budget{rules: newBudgetRules(cfg)}, nil
}

// Allows reports whether Retry would succeed. It takes nothing.
func (b *Budget) Allows(now time.Time, throttled bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.a.allows(&b.rules, stamp(now), throttled)
}

// Retry takes what one retry costs, or takes nothing and returns false. throttled says that the error before was a throttle
// (429): the AWS form charges less for it.
func (b *Budget) Retry(now time.Time, throttled bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := stamp(now)
	if !b.a.allows(&b.rules, at, throttled) {
		return false
	}
	b.a.spend(&b.rules, throttled)
	return true
}

// Return returns what Retry took, for a retry that was not made.
func (b *Budget) Return(now time.Time, throttled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.a.unspend(&b.rules, stamp(now), throttled)
}

// Record tells the budget how a first try ended: successes earn, failures cost tokens (gRPC). Ignored moves nothing.
func (b *Budget) Record(now time.Time, o Outcome) { b.record(now, o, lastTry{}) }

// RecordRetry is Record for a retry; throttled is what Retry was told.
func (b *Budget) RecordRetry(now time.Time, throttled bool, o Outcome) {
	b.record(now, o, lastTry{true, throttled})
}

func (b *Budget) record(now time.Time, o Outcome, last lastTry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.a.record(&b.rules, stamp(now), o, last.spent(&b.rules))
}

// Left is how many transient retries the budget allows now, if nothing else is recorded.
func (b *Budget) Left(now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.a.left(&b.rules, stamp(now))
}
