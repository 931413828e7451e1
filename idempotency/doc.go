// Package idempotency keeps the claims and the attempt ledger that turn at-least-once delivery into at most one
// completed run per key.
//
// Guarantees that every [Store] gives, and that the suite in storetest proves for each:
//
//   - At any moment at most one live claim exists for a [Key]. A claim whose lease has run out may be taken over at once; the
//     new owner gets a higher token, and every later write with the old token returns [ErrClaimLost].
//   - Once a key is completed, every claim of it answers [StatusCompleted] with the stored result until the key expires.
//   - The same key with another payload answers [StatusConflict] and touches nothing.
//   - The attempt number of a (job, run) only rises. Claim charges it; only Abandon gives it back; a crash does not.
//   - Nothing unfinished ever expires: Expire removes completed and closed records only.
//   - One clock, the store's, decides leases, due times and expiry. Callers pass durations, never times.
//
// Two jobs that share a key share the claim, not the attempt count, and a conflict on one never closes the other's claim.
package idempotency
