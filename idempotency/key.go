package idempotency

import (
	"crypto/sha256"
	"time"
)

// Key names one piece of work. Two jobs with the same key do that work once.
type Key struct {
	// Scope separates users of the same value: the job's Kind.
	Scope string
	// Value is the job's key, any bytes. It defaults to the job's id.
	Value string
}

// DefaultRetention is how long a completed or closed key is remembered.
const DefaultRetention = 48 * time.Hour

// Fingerprint is the SHA-256 of the payload bytes. The same key with another fingerprint is a conflict. Bytes are compared, not
// meaning: JSON with its keys in another order is another payload.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns the fingerprint of payload.
func FingerprintOf(payload []byte) Fingerprint { return sha256.Sum256(payload) }
