// Package adaptive finds limits by itself: how many calls may run at once, and how long one may take.
//
// Guarantees, each of them a test:
//
//   - A [Limit] stays between its floor and what is configured, rises by one step a round at most, and falls once a round.
//   - A [Timeout] stays between floor and ceiling. It is never below the 99th percentile of the calls that it knows, and calls that it cut
//     off never lower it.
//   - Nothing here starts a goroutine or reads a clock: every method takes the time.
package adaptive
