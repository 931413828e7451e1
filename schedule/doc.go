// Package schedule says when something is due: a [Backoff] is the delays between the attempts of one job.
//
// What it guarantees:
//
//   - Backoffs are values and pure functions: no clock, no timer, no state. They are safe for concurrent use.
//   - A delay is never negative and never overflows, for any attempt number up to math.MaxInt.
//   - Every delay lies between [Backoff.Shortest] and [Backoff.Longest] of its attempt. Jitter [JitterNone] is exact.
//   - Two processes that start in the same instant draw different series.
//   - [Merge] never returns less than the backoff's delay and never less than what the server asked for.
//   - What [ParseBackoff] accepts, [Backoff.String] prints in a form that it reads back to the same backoff.
//
// # Which attempt
//
// A delay belongs to the attempt that has just failed, counted from 1: Delay(1) is what passes between the failure of attempt 1
// and the start of attempt 2. The first attempt starts at once and has no place in a list. Delays that are written down as
// "0, 10 s, 1 min" by the attempt that starts is therefore fixed(10s, 1m) here, and n delays serve n+1 attempts.
package schedule
