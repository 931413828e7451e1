package budget

import (
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Try says which try of a call is meant.
type Try uint8

// The tries.
const (
	// TryFirst costs nothing.
	TryFirst Try = iota
	// TryRetry is a retry after an error.
	TryRetry
	// TryThrottled is a retry after a throttle (429). The AWS form charges less for it.
	TryThrottled
)

// Budget bounds retries to one destination. It is safe for concurrent use.
type Budget struct {
	mu      sync.Mutex
	rules   Rules
	balance Balance
}

// New returns a full budget.
func New(cfg Config) (*Budget, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	return &Budget{rules: NewRules(cfg)}, nil
}

// Allows reports whether Take would succeed. It takes nothing.
func (b *Budget) Allows(now time.Time, t Try) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.balance.Allows(&b.rules, stamp.Of(now), t)
}

// Take takes what a try costs, or takes nothing and returns false.
func (b *Budget) Take(now time.Time, t Try) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.balance.Allows(&b.rules, stamp.Of(now), t) {
		return false
	}
	b.balance.Take(&b.rules, t)
	return true
}

// Return gives back what Take took, for a try that was not made.
func (b *Budget) Return(now time.Time, t Try) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balance.Return(&b.rules, stamp.Of(now), t)
}

// Record tells the budget how a try ended: successes earn, failures cost tokens (gRPC). What is ignored moves nothing.
func (b *Budget) Record(now time.Time, t Try, o breaker.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balance.Record(&b.rules, stamp.Of(now), t, o)
}

// Left is how many retries after an error the budget allows now, if nothing else is recorded.
func (b *Budget) Left(now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.balance.Left(&b.rules, stamp.Of(now))
}
