package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/pools/breaker"
)

// handlerTx is the transaction that a handler may take. The handler's goroutine and the attempt's share it.
type handlerTx struct {
	mu    sync.Mutex
	asked bool           // the handler wanted one, also if it got none
	over  bool           // the handler has returned, or is not waited for any more
	tx    idempotency.Tx // nil until it was begun
	err   error          // why it was not begun
}

// TakeTx implements handlertx.Source.
//
//nolint:contextcheck // the attempt's context is used, and ends with the caller's
func (c *jobContext) TakeTx(ctx context.Context) (any, error) {
	a := c.attempt
	joinable, _ := a.w.cfg.Store.(idempotency.Joinable)
	switch {
	case a.w.cfg.Store == nil:
		return nil, fmt.Errorf("%w: this worker has no idempotency store: give it one that joins transactions, such as idempotency/postgres", idempotency.ErrNoTx)
	case !a.kind.keyed:
		return nil, fmt.Errorf("%w: kind %q takes no claim that could be completed with it: make the kind keyed", idempotency.ErrNoTx, a.kind.name)
	case joinable == nil:
		return nil, fmt.Errorf("%w: claims in a %T do not join transactions: keep them in idempotency/postgres", idempotency.ErrNoTx, a.w.cfg.Store)
	}
	// The store hears of the attempt's deadline, whatever the caller's own is, and begins nothing for an attempt that is over.
	begin, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	return a.tx.take(func() (idempotency.Tx, error) { return joinable.Begin(begin, a.claimHandle) })
}

func (t *handlerTx) take(begin func() (idempotency.Tx, error)) (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = true
	if t.over {
		return nil, fmt.Errorf("%w: the handler has returned, or was given up", idempotency.ErrNoTx)
	}
	if t.tx == nil {
		if t.tx, t.err = begin(); t.err != nil {
			t.tx = nil
			return nil, t.err
		}
	}
	return t.tx.Handle(), nil
}

// end lets nobody take the transaction any more and returns what was taken: the transaction, or why there is none, or neither.
func (t *handlerTx) end() (idempotency.Tx, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	return t.tx, t.err
}

// wanted reports whether the handler has asked for a transaction so far.
func (t *handlerTx) wanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked
}

// endTx ends the transaction of a handler that has returned err, if it took one, and judges: a success that cannot be committed is none.
func (a *attempt) endTx(err, cause error) verdict {
	tx, missing := a.tx.end()
	switch {
	case tx == nil && missing == nil:
		return classifySafely(err, cause)
	case tx == nil:
		return a.withoutTx(err, cause, missing)
	case err != nil:
		// The handler's error is what counts. A connection that cannot be told is closed, which the database takes for a rollback.
		_ = tx.Rollback(a.w.settling.context())
		return classifySafely(err, cause)
	}
	return a.commit(tx)
}

// withoutTx judges a handler whose transaction could not be begun. Where the store was away, the job was not tried.
func (a *attempt) withoutTx(err, cause, missing error) verdict {
	if err == nil {
		err = fmt.Errorf("the handler returned nil although it got no transaction: %w", missing)
		cause = nil
	}
	v := classifySafely(err, cause)
	if v.outcome == OutcomeFailed && v.cause != dlq.CausePanic && errors.Is(missing, idempotency.ErrUnavailable) {
		return a.storeFailed(missing)
	}
	return v
}

// commit completes the claim and commits, as one. The lease is kept alive meanwhile. Where nobody knows whether it was committed, it asks until the
// store answers or the stop is over.
func (a *attempt) commit(tx idempotency.Tx) verdict {
	a.keepalive.setCommitting(true)
	defer a.keepalive.setCommitting(false)
	completion := a.completion()
	var err error
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, 2*time.Second) {
		err = tx.Commit(a.w.settling.context(), completion)
		if !inDoubt(err) || !pause.For(a.w.settling.parent, jitter(delay)) {
			break
		}
		a.w.storeHealth.failed(err)
	}
	switch {
	case err == nil:
		a.committed = true
		return classifySafely(nil, nil)
	case inDoubt(err):
		// The copy that comes when the lease has run out finds the key completed, or its claim free.
		return verdict{outcome: OutcomeInterrupted, lost: true, err: fmt.Errorf("the stop came before the store said whether the transaction was committed: %w", err)}
	case errors.Is(err, idempotency.ErrClaimLost):
		a.w.observe(&Lost{Job: a.job, Kind: a.kind.name, Err: ErrClaimLost})
		return verdict{outcome: OutcomeInterrupted, lost: true, err: fmt.Errorf("%w; the handler's transaction was rolled back", ErrClaimLost)}
	case errors.Is(err, idempotency.ErrUnavailable):
		return a.storeFailed(err)
	}
	return classifySafely(&Error{Outcome: OutcomeFailed, Err: fmt.Errorf("the handler returned nil, but its transaction was not committed: %w", err), Breaker: breaker.OutcomeIgnored}, nil)
}

// inDoubt says that a commit may or may not have happened.
func inDoubt(err error) bool {
	return errors.Is(err, idempotency.ErrUnavailable) && !errors.Is(err, idempotency.ErrRolledBack) && !errors.Is(err, idempotency.ErrClaimLost)
}

// storeFailed puts the job back unspent: nothing of the attempt was stored, and that is not the job's fault.
func (a *attempt) storeFailed(err error) verdict {
	a.w.storeHealth.failed(err)
	return a.storeUnavailable(err)
}
