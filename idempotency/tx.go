package idempotency

import (
	"context"
	"fmt"

	"github.com/caisson-go/caisson/internal/handlertx"
)

// Joinable is a Store that lets a handler's own writes and the completion of its claim commit together: the effect is then exactly once.
type Joinable interface {
	Store
	// Begin starts a transaction for the holder of h. The claim was committed before; nobody else waits for this transaction until it
	// completes the claim at its end. An error that wraps [ErrUnavailable] says that the store is away, not that it is busy.
	Begin(ctx context.Context, h Handle) (Tx, error)
}

// Tx is a handler's transaction. One goroutine uses it at a time, except that Rollback may come while the handler is still using Handle.
type Tx interface {
	// Handle is the database's own transaction, for example a pgx.Tx. Handlers must neither commit it nor roll it back.
	Handle() any
	// Commit completes the claim inside the transaction and commits. It returns nil only if both are stored for good; where the answer to
	// the commit was lost, it asks the store. [ErrClaimLost] and [ErrRolledBack] mean that nothing was stored. After [ErrUnavailable]
	// nobody knows yet: call it again, which asks and never commits twice. An error that wraps both ErrRolledBack and ErrUnavailable says that
	// nothing was stored because the store went away.
	Commit(ctx context.Context, c Completion) error
	// Rollback undoes everything, and takes the connection from a handler that is still using it. After a Commit that returned nil it does
	// nothing. If it cannot tell the database, the database finds out when the connection ends.
	Rollback(ctx context.Context) error
}

// TxFrom returns the handle of the transaction that belongs to the attempt that ctx belongs to. Handlers call the function of their store, such
// as postgres.TxFrom, which knows the handle's type.
func TxFrom(ctx context.Context) (handle any, err error) {
	source, ok := ctx.Value(handlertx.Key{}).(handlertx.Source)
	if !ok {
		return nil, errOutside
	}
	return source.TakeTx(ctx)
}

var errOutside = fmt.Errorf("%w: the context is not a handler's: pass on the one that the handler was given", ErrNoTx)
