package pools

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
)

// Policy is the defence around calls to one dependency, to be made once and shared by all calls to it. It is safe for
// concurrent use.
type Policy[T any] struct {
	cfg   CallConfig[T]
	stats callStats
}

type callStats struct {
	calls, failed, refused, retried, retryRefused, hedged, hedgeWon, fellBack, fallbackFailed atomic.Uint64
}

// NewPolicy returns a policy.
func NewPolicy[T any](cfg CallConfig[T]) (*Policy[T], error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("call policy %q: %w", cfg.Name, err)
	}
	return &Policy[T]{cfg: cfg}, nil
}

// Call runs fn behind p: timeout, then bulkhead, then breaker, then retries within the budget, then the call; the fallback
// comes last. The order matters: a full bulkhead costs nothing behind it, the breaker sees all attempts as one call, and nothing
// outlives the timeout.
//
// fn must heed its context: Call returns when fn has. A panic in fn counts as a failure and goes on to the caller.
// The error is fn's own, or matches [ErrFull] or [ErrRefused], or is the context's.
func Call[T any](ctx context.Context, p *Policy[T], fn func(context.Context) (T, error)) (T, error) {
	p.stats.calls.Add(1)
	v, err := p.guarded(ctx, fn)
	if err == nil {
		return v, nil
	}
	p.stats.failed.Add(1)
	if p.cfg.Fallback == nil || ctx.Err() != nil {
		return v, err
	}
	p.note(&p.stats.fellBack, CallEventFellBack)
	sub, ferr := p.cfg.Fallback(ctx, err)
	if ferr != nil {
		p.note(&p.stats.fallbackFailed, CallEventFallbackFailed)
		return sub, fmt.Errorf("%w; fallback: %w", err, ferr)
	}
	return sub, nil
}

// guarded is everything but the fallback.
func (p *Policy[T]) guarded(caller context.Context, fn func(context.Context) (T, error)) (v T, err error) {
	ctx, cancel := context.WithTimeout(caller, p.cfg.Timeout)
	defer cancel()
	if b := p.cfg.Bulkhead; b != nil {
		if err := b.Acquire(ctx, 0); err != nil {
			if errors.Is(err, ErrFull) {
				p.note(&p.stats.refused, CallEventRefused)
			}
			return v, fmt.Errorf("call to %s: %w", p.cfg.Name, err)
		}
		defer b.Release()
	}
	trial, permit, verdict := p.cfg.admit(time.Now())
	if !verdict.OK() {
		p.note(&p.stats.refused, CallEventRefused)
		return v, &RefusedError{Name: p.cfg.Name, Verdict: verdict}
	}
	a := &account{breaker: &trial, permit: &permit, budget: p.cfg.Budget}
	outcome := breaker.OutcomeFailure // what a panic leaves
	defer func() { a.done(time.Now(), outcome) }()
	v, err = p.attempts(ctx, a, fn)
	outcome = p.cfg.outcome(caller, err)
	return v, err
}

// attempts runs fn until it succeeds or another attempt makes no sense.
func (p *Policy[T]) attempts(ctx context.Context, a *account, fn func(context.Context) (T, error)) (T, error) {
	for failed := 1; ; failed++ {
		v, err := p.attempt(ctx, a, fn)
		if err == nil || failed >= p.cfg.MaxAttempts || ctx.Err() != nil || !p.cfg.Retryable(err) {
			return v, err
		}
		delay := max(p.cfg.Backoff(failed), 0)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= delay {
			return v, err // nothing could come of it in the time that is left
		}
		a.failed(time.Now(), p.cfg.Outcome(err))
		if !p.mayRetry(a, p.cfg.retryOf(err), false) {
			return v, err
		}
		if !pause.For(ctx, delay) {
			return v, err
		}
		p.note(&p.stats.retried, CallEventRetried)
	}
}

// attempt runs fn once, with a hedge if there is to be one.
func (p *Policy[T]) attempt(ctx context.Context, a *account, fn func(context.Context) (T, error)) (T, error) {
	if p.cfg.AttemptTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.cfg.AttemptTimeout)
		defer cancel()
	}
	if p.cfg.HedgeAfter > 0 {
		return p.hedge(ctx, a, fn)
	}
	return fn(ctx)
}

// mayRetry takes what one more try costs.
func (p *Policy[T]) mayRetry(a *account, t budget.Try, hedge bool) bool {
	if !a.retry(time.Now(), t, hedge) {
		p.note(&p.stats.retryRefused, CallEventRetryRefused)
		return false
	}
	return true
}

func (p *Policy[T]) note(counter *atomic.Uint64, e CallEvent) {
	counter.Add(1)
	if p.cfg.Observe != nil {
		p.cfg.Observe(e)
	}
}

// CallSnapshot counts what a policy's calls came to, for display.
type CallSnapshot struct {
	Name string `json:"name"`
	// Calls were begun, Failed of them ended in an error, before any fallback.
	Calls  uint64 `json:"calls"`
	Failed uint64 `json:"failed"`
	// The others count the [CallEvent] of that name.
	Refused        uint64 `json:"refused"`
	Retried        uint64 `json:"retried"`
	RetryRefused   uint64 `json:"retry_refused"`
	Hedged         uint64 `json:"hedged"`
	HedgeWon       uint64 `json:"hedge_won"`
	FellBack       uint64 `json:"fell_back"`
	FallbackFailed uint64 `json:"fallback_failed"`
}

// Snapshot returns the counts so far.
func (p *Policy[T]) Snapshot() CallSnapshot {
	s := &p.stats
	return CallSnapshot{
		Name: p.cfg.Name, Calls: s.calls.Load(), Failed: s.failed.Load(), Refused: s.refused.Load(), Retried: s.retried.Load(),
		RetryRefused: s.retryRefused.Load(), Hedged: s.hedged.Load(), HedgeWon: s.hedgeWon.Load(),
		FellBack: s.fellBack.Load(), FallbackFailed: s.fallbackFailed.Load(),
	}
}
