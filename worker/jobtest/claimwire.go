package jobtest

import (
	"context"

	"github.com/caisson-go/caisson/idempotency"
)

// claimsOf returns the store of claims as one worker sees it, with what the store can do beyond its port.
func (b *Bench) claimsOf(c *crew) idempotency.Store {
	w := claimWire{Store: b.claims, bench: b, crew: c}
	switch store := b.claims.(type) {
	case idempotency.Transactional:
		return &txWire{claimWire: w, store: store}
	case idempotency.Joinable:
		return &joinWire{claimWire: w, store: store}
	}
	return &w
}

// claimWire is the idempotency store as one worker sees it.
type claimWire struct {
	idempotency.Store
	bench *Bench
	crew  *crew
}

func (w *claimWire) cut() error { return w.bench.cut(w.crew, PartClaims, idempotency.ErrUnavailable) }

func (w *claimWire) Claim(ctx context.Context, reqs []idempotency.Request) []idempotency.Claim {
	if err := w.cut(); err != nil {
		return repeat(idempotency.Claim{Err: err}, len(reqs))
	}
	return w.Store.Claim(ctx, reqs)
}

func (w *claimWire) Extend(ctx context.Context, exts []idempotency.Extension) []error {
	return cutAll(w.cut(), exts, func() []error { return w.Store.Extend(ctx, exts) })
}

func (w *claimWire) Complete(ctx context.Context, comps []idempotency.Completion) []error {
	return cutAll(w.cut(), comps, func() []error { return w.Store.Complete(ctx, comps) })
}

func (w *claimWire) Abandon(ctx context.Context, abs []idempotency.Abandonment) []error {
	return cutAll(w.cut(), abs, func() []error { return w.Store.Abandon(ctx, abs) })
}

func (w *claimWire) Fail(ctx context.Context, fails []idempotency.Failure) []error {
	return cutAll(w.cut(), fails, func() []error { return w.Store.Fail(ctx, fails) })
}

func (w *claimWire) Expire(ctx context.Context, limit int) (int, error) {
	if err := w.cut(); err != nil {
		return 0, err
	}
	return w.Store.Expire(ctx, limit)
}

func (w *claimWire) Ping(ctx context.Context) error {
	if err := w.cut(); err != nil {
		return err
	}
	return w.Store.Ping(ctx)
}

// txWire is a store that shares its database with the queue.
type txWire struct {
	claimWire

	store idempotency.Transactional
}

func (w *txWire) InTx(ctx context.Context, c idempotency.Completion, fn func(context.Context, any) error) error {
	if err := w.cut(); err != nil {
		return err
	}
	return w.store.InTx(ctx, c, fn)
}

func (w *txWire) Database() any { return database(w.store) }

// joinWire is a store whose transactions handlers may take.
type joinWire struct {
	claimWire

	store idempotency.Joinable
}

func (w *joinWire) Begin(ctx context.Context, h idempotency.Held) (idempotency.Tx, error) {
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

	wire *joinWire
}

func (t *txEnd) Commit(ctx context.Context, c idempotency.Completion) error {
	if err := t.wire.cut(); err != nil {
		return err
	}
	return t.Tx.Commit(ctx, c)
}
