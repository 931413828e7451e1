package idempotency

// Limits of what a store keeps and returns.
const (
	// MaxOwner is the most bytes of [Request.Owner].
	MaxOwner = 200
	// MaxHistory is the most attempts that the ledger remembers of one run; the newest are kept.
	MaxHistory = 64
	// MaxAttemptError is the most bytes of an attempt's error that the ledger keeps.
	MaxAttemptError = 512
	// MaxResult is the most bytes of a result. Longer ones are replaced by their size and hash.
	MaxResult = 64 << 10
	// MaxFound is the most records that one [Finder.Find] returns.
	MaxFound = 100
)
