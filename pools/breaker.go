package pools

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Breaker is a circuit breaker of its own, for one thing to protect. For many, keyed by name, use [Destinations].
// It is safe for concurrent use.
type Breaker struct {
	g guard
	d destination
}

// NewBreaker returns a closed breaker. onTransition, which may be nil, is called after each transition: outside the lock, one
// at a time and in order. It may call back and may panic.
func NewBreaker(cfg BreakerConfig, onTransition func(Transition)) (*Breaker, error) {
	return newBreaker(cfg, onTransition, rand.Float64)
}

func newBreaker(cfg BreakerConfig, onTransition func(Transition), random func() float64) (*Breaker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("breaker: %w", err)
	}
	s := &settings{breaker: cfg, width: cfg.width(), budget: budgetRules{form: BudgetFormNone}, rand: random}
	return &Breaker{
		g: guard{hooks: &hooks{fn: onTransition}},
		d: destination{s: s, tat: never},
	}, nil
}

// Admit takes a permit, or tells why not and when to ask again.
func (b *Breaker) Admit(now time.Time) (Permit, Verdict) {
	b.g.mu.Lock()
	defer b.g.unlock()
	return b.d.admit(&b.g, now, false, 0)
}

// Peek tells what Admit would answer. It takes nothing. During a ramp it says yes where Admit may hold a call back.
func (b *Breaker) Peek(now time.Time) Verdict {
	b.g.mu.Lock()
	defer b.g.mu.Unlock()
	reason, wait := b.d.check(stamp(now), false, 0)
	return Verdict{Reason: reason, Wait: time.Duration(wait)}
}

// NextTry is when it makes sense to ask again: now while the breaker would admit a call.
func (b *Breaker) NextTry(now time.Time) time.Time { return now.Add(b.Peek(now).Wait) }

// State is the current state. An open breaker whose time is over stays open until the first probe asks.
func (b *Breaker) State() State {
	b.g.mu.Lock()
	defer b.g.mu.Unlock()
	return b.d.state
}

// Force sets or, with [OverrideNone], clears an override. The state beside it goes on by itself.
func (b *Breaker) Force(now time.Time, o Override) {
	b.g.mu.Lock()
	defer b.g.unlock()
	b.d.notify(&b.g, now, b.d.force(stamp(now), o))
}

// Reset closes the breaker and forgets what it counted. Results of calls still out are dropped. An override stays.
func (b *Breaker) Reset(now time.Time) {
	b.g.mu.Lock()
	defer b.g.unlock()
	b.d.notify(&b.g, now, b.d.reset(stamp(now)))
}

// Snapshot describes the breaker for display.
func (b *Breaker) Snapshot(now time.Time) DestinationSnapshot {
	b.g.mu.Lock()
	defer b.g.mu.Unlock()
	return b.d.snapshot(now)
}

// HookPanics is how often onTransition has panicked.
func (b *Breaker) HookPanics() uint64 { return b.g.hooks.panicked() }
