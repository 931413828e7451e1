// Package limiter limits how many calls are made per second.
//
// Guarantees, each of them a test:
//
//   - It is a leaky bucket, exactly: a call passes if and only if the bucket has room.
//   - A refusal takes nothing, and says to the nanosecond when to ask again.
//   - A new limit keeps what was spent under the old one.
//   - Nothing here starts a goroutine or reads a clock: every method takes the time.
package limiter
