package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

var _ idempotency.Joinable = (*Store)(nil)

// TxFrom returns the transaction of the attempt that ctx belongs to. The first call begins it, later ones return the same. What is written in it is
// stored together with the completion of the job's claim if the handler returns nil, and else not at all.
//
// The transaction is the handler's until it returns. It is refused to commit: the worker does. Rolled back by the handler, the attempt fails,
// as it does after an error of PostgreSQL that the handler did not return and that no savepoint (Begin) has undone.
//
// The error wraps [idempotency.ErrNoTx] outside of a handler, for an unkeyed kind, and where claims are kept in another store.
// Return it: if PostgreSQL is away, the job is put back with no attempt spent.
func TxFrom(ctx context.Context) (pgx.Tx, error) {
	got, err := idempotency.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	tx, ok := got.(pgx.Tx)
	if !ok {
		return nil, fmt.Errorf("%w: the claims' store joins a %T and no pgx.Tx", idempotency.ErrNoTx, got)
	}
	return tx, nil
}

// joins begins the transactions of handlers.
type joins struct {
	pool    *pgxpool.Pool
	all     int // connections of the pool
	options pgx.TxOptions
	// slots are the connections that handlers may take, so that some are left for claims, heartbeats and completions: without those no handler
	// would ever end.
	slots chan struct{}
}

// reserved is how many of n connections are kept for claims by default.
func reserved(n int) int { return min(4, (n+1)/2) }

func newJoins(pool *pgxpool.Pool, most int, options pgx.TxOptions) (joins, error) {
	all := int(pool.Config().MaxConns)
	switch {
	case options.BeginQuery != "" || options.CommitQuery != "":
		return joins{}, errors.New("transaction options: BeginQuery and CommitQuery are the store's own: use IsoLevel, AccessMode and DeferrableMode")
	case options.AccessMode == pgx.ReadOnly:
		return joins{}, errors.New("transaction options: a read only transaction cannot complete a claim")
	case most < 0 || most > 0 && most >= all:
		return joins{}, fmt.Errorf("transactions %d: must be from 1 to %d, which leaves claims a connection of the pool's %d", most, all-1, all)
	}
	return joins{pool: pool, all: all, options: options, slots: make(chan struct{}, cmp.Or(most, all-reserved(all)))}, nil
}

// Begin implements [idempotency.Joinable]. It waits for one of the connections that handlers may have. ctx also says how long the server lets a
// statement run, and the transaction rest between two: until its deadline and 30 s more.
func (s *Store) Begin(ctx context.Context, h idempotency.Handle) (idempotency.Tx, error) {
	if cap(s.joins.slots) == 0 {
		return nil, fmt.Errorf("%w: the store's pool has one connection, which claims need: give it more", idempotency.ErrNoTx)
	}
	select {
	case s.joins.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for one of the %d connections that handlers may have (Config.Transactions, MaxConns): %w", cap(s.joins.slots), context.Cause(ctx))
	}
	t := &transaction{store: s, held: h, mark: strconv.FormatInt(h.Token, 36)}
	if err := t.begin(ctx); err != nil {
		<-s.joins.slots
		return nil, err
	}
	return t, nil
}

// begin takes a connection that works, since one that lay idle may have ended without anybody having noticed.
func (t *transaction) begin(ctx context.Context) (err error) {
	options := t.store.joins.options
	options.BeginQuery = beginQuery(ctx, options, t.mark)
	for range t.store.joins.all + 1 { // all that lay idle may have ended
		if t.conn, err = t.store.joins.pool.Acquire(ctx); err != nil {
			break
		}
		t.store.trips.Add(1)
		if t.inner, err = t.conn.Conn().BeginTx(ctx, options); err == nil {
			t.handle.gated = gated{inner: t.inner, gate: &t.gate}
			return nil
		}
		broken := t.conn.Conn().IsClosed()
		t.conn.Release() // which closes it unless it is in order
		if !broken || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("begin the handler's transaction: %w", errors.Join(context.Cause(ctx), err))
	}
	return away("begin the handler's transaction", err)
}

// away marks errors of a database that is away.
func away(what string, err error) error {
	if pgdb.Unreached(err) && !pgdb.Conflict(err) {
		return fmt.Errorf("%s: %w: %w", what, idempotency.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// beginQuery begins, marks the transaction so that it is known again at its end, and bounds how long the server keeps it for a worker that it does
// not hear of. A statement may take all of the attempt's time, whatever the pool's timeout for claims is.
func beginQuery(ctx context.Context, o pgx.TxOptions, mark string) string {
	sql := "begin"
	if o.IsoLevel != "" {
		sql += " isolation level " + string(o.IsoLevel)
	}
	if o.AccessMode != "" {
		sql += " " + string(o.AccessMode)
	}
	if o.DeferrableMode != "" {
		sql += " " + string(o.DeferrableMode)
	}
	sql += "; set local caisson.attempt = '" + mark + "'"
	if deadline, ok := ctx.Deadline(); ok {
		rest := time.Until(deadline) + 30*time.Second
		ms := strconv.FormatInt(max(rest.Milliseconds(), 1000), 10)
		sql += "; set local idle_in_transaction_session_timeout = " + ms + "; set local statement_timeout = " + ms
	}
	return sql
}
