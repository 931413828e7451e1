package jobtest

import (
	"context"

	"github.com/caisson-go/caisson/idempotency"
)

// claimsOf returns the store of claims as one worker sees it, with what the store can do beyond its port.
func (b *Bench) claimsOf(c *process) idempotency.Store {
	w := faultyClaims{Store: b.claims, bench: b, process: c}
	switch store := b.claims.(type) {
	case idempotency.Transactional:
		return &faultyTxClaims{faultyClaims: w, store: store}
	case idempotency.Joinable:
		return &faultyJoinClaims{faultyClaims: w, store: store}
	}
	return &w
}

// faultyClaims is the idempotency store as one worker sees it.
type faultyClaims struct {
	idempotency.Store
	bench   *Bench
	process *process
}

func (w *faultyClaims) cut() error {
	return w.bench.cut(w.process, PartClaims, idempotency.ErrUnavailable)
}

func (w *faultyClaims) Claim(ctx context.Context, reqs []idempotency.Request) []idempotency.Claim {
	if err := w.cut(); err != nil {
		return repeat(idempotency.Claim{Err: err}, len(reqs))
	}
	return w.Store.Claim(ctx, reqs)
}

func (w *faultyClaims) Extend(ctx context.Context, exts []idempotency.Extension) []error {
	return cutAll(w.cut(), exts, func() []error { return w.Store.Extend(ctx, exts) })
}

func (w *faultyClaims) Complete(ctx context.Context, comps []idempotency.Completion) []error {
	return cutAll(w.cut(), comps, func() []error { return w.Store.Complete(ctx, comps) })
}

func (w *faultyClaims) Abandon(ctx context.Context, abs []idempotency.Abandonment) []error {
	return cutAll(w.cut(), abs, func() []error { return w.Store.Abandon(ctx, abs) })
}

func (w *faultyClaims) Fail(ctx context.Context, fails []idempotency.Failure) []error {
	return cutAll(w.cut(), fails, func() []error { return w.Store.Fail(ctx, fails) })
}

func (w *faultyClaims) Expire(ctx context.Context, limit int) (int, error) {
	if err := w.cut(); err != nil {
		return 0, err
	}
	return w.Store.Expire(ctx, limit)
}

func (w *faultyClaims) Ping(ctx context.Context) error {
	if err := w.cut(); err != nil {
		return err
	}
	return w.Store.Ping(ctx)
}

// faultyTxClaims is a store that shares its database with the queue.
type faultyTxClaims struct {
	faultyClaims

	store idempotency.Transactional
}

func (w *faultyTxClaims) InTx(ctx context.Context, c idempotency.Completion, fn func(context.Context, any) error) error {
	if err := w.cut(); err != nil {
		return err
	}
	return w.store.InTx(ctx, c, fn)
}

func (w *faultyTxClaims) Database() any { return database(w.store) }

// faultyJoinClaims is a store whose transactions handlers may take.
type faultyJoinClaims struct {
	faultyClaims

	store idempotency.Joinable
}

func (w *faultyJoinClaims) Begin(ctx context.Context, h idempotency.Handle) (idempotency.Tx, error) {
	if err := w.cut(); err != nil {
		return nil, err
	}
	tx, err := w.store.Begin(ctx, h)
	if err != nil {
		return nil, err
	}
	return &txEnd{Tx: tx, wire: w}, nil
}

// txEnd is a transaction that a dead worker does not commit.
type txEnd struct {
	idempotency.Tx

	wire *faultyJoinClaims
}

func (t *txEnd) Commit(ctx context.Context, c idempotency.Completion) error {
	if err := t.wire.cut(); err != nil {
		return err
	}
	return t.Tx.Commit(ctx, c)
}
