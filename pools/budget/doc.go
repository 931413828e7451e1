// Package budget bounds retries, so that a sick destination is not buried under them: by a share of the successes (Finagle), by
// tokens that failures cost (gRPC, gRFC A6), or by a quota that successes refill (AWS SDKs).
//
// Guarantees, each of them a test:
//
//   - What is allowed follows from what was recorded and taken, and from nothing else: each form agrees with a plain list of entries.
//   - A refusal takes nothing. A first try is never refused.
//   - Nothing here starts a goroutine or reads a clock: every method takes the time.
package budget
