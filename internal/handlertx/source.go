package handlertx

import "context"

// Source begins the transaction of one attempt.
type Source interface {
	// TakeTx returns the handle of the attempt's transaction, which it begins at the first call. The error wraps idempotency.ErrNoTx if
	// there can be none.
	TakeTx(ctx context.Context) (handle any, err error)
}

// Key is the key under which a handler's context has its [Source].
type Key struct{}
