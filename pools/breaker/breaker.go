package breaker

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/caisson-go/caisson/pools/internal/notify"
	"github.com/caisson-go/caisson/pools/internal/stamp"
)

// Breaker is a circuit breaker for one thing to protect. It is safe for concurrent use.
type Breaker struct {
	mu      sync.Mutex
	rules   Rules
	circuit Circuit
	out     int
	changes notify.Queue[Transition]
}

// New returns a closed breaker.
func New(cfg Config) (*Breaker, error) { return newBreaker(cfg, rand.Float64) }

func newBreaker(cfg Config, random func() float64) (*Breaker, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("breaker: %w", err)
	}
	return &Breaker{rules: NewRules(cfg, random)}, nil
}

// OnTransition sets a hook that is called after each transition: outside the lock, one at a time and in order. It may call back and may
// panic. Set it before the breaker is in use.
func (b *Breaker) OnTransition(hook func(Transition)) { b.changes.Fn = hook }

func (b *Breaker) unlock() {
	b.mu.Unlock()
	b.changes.Deliver()
}

func (b *Breaker) changed(now time.Time, ch Change) {
	if ch.Reason != "" {
		b.changes.Push(ch.At(now, ""))
	}
}

// SetPlaces says how many calls can be in flight at once; zero if nobody knows. It decides how many failures in a row open the breaker, and
// how many calls are spent on finding out.
func (b *Breaker) SetPlaces(now time.Time, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.circuit.SetPlaces(stamp.Of(now), n)
}

// Permit is the right to make one call. Hand it on by pointer: a copy could be completed a second time. The zero Permit does nothing.
// It is safe for concurrent use.
type Permit struct {
	b     *Breaker
	trial Trial
	done  bool
}

// Admit admits a call and returns zero, or returns how long until it makes sense to ask again. Complete the permit with [Permit.Done].
func (b *Breaker) Admit(now time.Time) (Permit, time.Duration) {
	b.mu.Lock()
	defer b.unlock()
	at := stamp.Of(now)
	b.circuit.Settle(&b.rules, at)
	b.changed(now, b.circuit.Judge(&b.rules, at, stamp.Never))
	if wait := b.circuit.Check(&b.rules, at, b.out); wait > 0 {
		return Permit{}, wait
	}
	step, held := b.circuit.RampHolds(&b.rules, at)
	if held {
		return Permit{}, time.Duration(probeHint)
	}
	b.circuit.RampPass(step)
	trial, ch := b.circuit.Admit(&b.rules, at)
	b.out++
	b.changed(now, ch)
	return Permit{b: b, trial: trial}, 0
}

// Done records the outcome as of now. Only the first completion counts.
func (p *Permit) Done(now time.Time, o Outcome) {
	if p.b == nil {
		return
	}
	p.b.mu.Lock()
	defer p.b.unlock()
	if p.done {
		return
	}
	p.done = true
	p.b.out--
	p.b.changed(now, p.b.circuit.Report(&p.b.rules, stamp.Of(now), p.trial, o))
}

// Cancel gives the permit back for a call that was not made after all.
func (p *Permit) Cancel(now time.Time) { p.Done(now, OutcomeIgnored) }

// Retry returns zero if another try of the same call makes sense, or how long to wait because the breaker has opened since.
func (p *Permit) Retry(now time.Time) time.Duration {
	if p.b == nil {
		return 0
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.b.circuit.Overtaken(&p.b.rules, stamp.Of(now), p.trial)
}

// Peek returns how long Admit would refuse. It takes nothing. During a ramp it returns zero where Admit may hold a call back.
func (b *Breaker) Peek(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit.Check(&b.rules, stamp.Of(now), b.out)
}

// State is the current state. An open breaker whose time is over stays open until the first probe asks.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit.State()
}

// Override is the operator's word.
func (b *Breaker) Override() Override {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit.Override()
}

// Force sets or, with [OverrideNone], clears an override. The state beside it goes on by itself.
func (b *Breaker) Force(now time.Time, o Override) {
	b.mu.Lock()
	defer b.unlock()
	b.changed(now, b.circuit.Force(stamp.Of(now), o))
}

// Reset closes the breaker and forgets what it counted. Results of calls still out are dropped. An override stays.
func (b *Breaker) Reset(now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	b.changed(now, b.circuit.Reset(stamp.Of(now)))
}

// HookPanics is how often the hook has panicked.
func (b *Breaker) HookPanics() uint64 { return b.changes.Panics() }

// Snapshot describes a breaker for display.
type Snapshot struct {
	State    State    `json:"state"`
	Override Override `json:"override"`
	// OpenSince is when it left closed; zero while it is closed.
	OpenSince time.Time `json:"open_since,omitzero"`
	// Wait is how long calls are refused.
	Wait time.Duration `json:"wait"`
	// InUse counts the permits that are out.
	InUse int `json:"in_use"`
	// Calls, Failures and Slow count what completed in the window.
	Calls    int `json:"calls"`
	Failures int `json:"failures"`
	Slow     int `json:"slow"`
	// InARow counts the failures since a call was answered that started before them.
	InARow int `json:"in_a_row"`
	// FailedRounds is how often in a row the probes failed.
	FailedRounds int `json:"failed_rounds"`
}

// Snapshot describes the breaker.
func (b *Breaker) Snapshot(now time.Time) Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := stamp.Of(now)
	calls := b.circuit.Calls(&b.rules, at)
	s := Snapshot{
		State: b.circuit.State(), Override: b.circuit.Override(), Wait: b.circuit.Check(&b.rules, at, b.out), InUse: b.out,
		Calls: int(calls.Completed), Failures: int(calls.Failed), Slow: int(calls.Slow), //nolint:gosec // far below
		InARow: b.circuit.InARow(), FailedRounds: b.circuit.FailedRounds(),
	}
	if since, ok := b.circuit.OpenSince(); ok {
		s.OpenSince = stamp.Time(now, since)
	}
	return s
}
