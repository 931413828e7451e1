package idempotency

import "errors"

// Errors that stores and their transactions return, usually wrapped. Match them with errors.Is.
var (
	// ErrClaimLost means that the token is no longer the key's: the claim ran out and another owner took it, or it was
	// already completed, failed or abandoned. See [Store.Complete] for the successes that still count then.
	ErrClaimLost = errors.New("claim lost: its lease ran out and another owner took it, or it was already ended")
	// ErrNotFound means that the store has no record of the key.
	ErrNotFound = errors.New("key not found")
	// ErrUnavailable means that the store cannot answer for now. The call may be repeated.
	ErrUnavailable = errors.New("idempotency store unavailable")
	// ErrRolledBack means that a transaction could not be committed, and that nothing of it was stored.
	ErrRolledBack = errors.New("transaction rolled back")
	// ErrNoTx means that there is no transaction to take: outside of a handler, after it, for an unkeyed kind, or with a store that is not
	// [Joinable].
	ErrNoTx = errors.New("no transaction to take")
)
