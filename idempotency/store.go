package idempotency

import (
	"context"
	"time"
)

// Store keeps claims and the attempt ledger. Implementations are safe for concurrent use. Each method takes a batch, answers
// item by item in the same order, and costs one round trip; stores may join concurrent calls. Items of one batch take effect one
// after the other: of two claims of one key the first is Acquired and the second Busy.
//
// Writes on a claim (Extend, Complete, Abandon, Fail) return [ErrClaimLost] if the token, the job or the run is no longer the
// key's. All four succeed for a claim that ran out and that nobody took over.
type Store interface {
	// Claim asks for keys and charges an attempt for each one acquired.
	Claim(ctx context.Context, reqs []Request) []Claim

	// Extend prolongs claims. A nil error means that the claim was still held.
	Extend(ctx context.Context, exts []Extension) []error

	// Complete closes claims with success and stores their results. A late success is a success: it also succeeds for a claim that
	// expired, failed without Final, or was abandoned, as long as nobody has claimed the key since. Repeating a completion with the
	// same token is a no-op.
	Complete(ctx context.Context, comps []Completion) []error

	// Abandon gives claims back with no attempt spent.
	Abandon(ctx context.Context, abs []Abandonment) []error

	// Fail ends claims after a failed attempt; the attempt stays charged.
	Fail(ctx context.Context, fails []Failure) []error

	// Get returns what is known of a key, or [ErrNotFound].
	Get(ctx context.Context, key Key) (Record, error)

	// Expire removes at most limit completed or closed records whose retention is over and returns how many it removed. Until
	// it removed them they may answer as before. A key and the ledger entry of its run may be one record or two. A store that drops
	// records by the generation removes all of it, whatever the limit.
	Expire(ctx context.Context, limit int) (int, error)

	// Ping returns nil while the store can take claims. Readiness hangs on it.
	Ping(ctx context.Context) error
}

// Transactional is a Store whose Complete can join a transaction with the queue in the same database, so that completion and ack commit
// together. For a handler's own writes see [Joinable].
type Transactional interface {
	Store
	// InTx runs fn in a transaction that also holds c's completion. The type of tx is the store's own. If the completion finds its claim lost, the transaction is rolled back
	// and [ErrClaimLost] returned.
	InTx(ctx context.Context, c Completion, fn func(ctx context.Context, tx any) error) error
}

// Record is what a store knows of one key.
type Record struct {
	Key Key
	// State is Acquired (claimed, maybe expired), Completed, or 0 when free: between attempts, or closed.
	State Status
	// Job and Run are the last to hold the claim.
	Job string
	Run int
	// Attempt is the last number charged to that job and run.
	Attempt int
	// Closed says that that run was given up.
	Closed bool
	Owner  string
	Token  int64
	// Until is when the claim runs out, the next try is due, or the record expires.
	Until   time.Time
	History []Attempt
	Result  Result
}
