// Package breaker keeps calls from what is sick: it opens when too many calls fail or are slow, waits, lets a few probes through, and
// closes when enough of them succeed.
//
// Guarantees, each of them a test:
//
//   - It counts completed calls in the bucket in which they completed, compares in integers, and opens at the threshold and not below it,
//     with the minimum of calls and not with fewer, unless so many failed in a row. What is [OutcomeIgnored] moves nothing.
//   - When every call fails or hangs it opens, whatever timeout, window and traffic are, if it knows how many calls can be in flight
//     (n): it spends at most max(8, 2n) calls, and at most three timeouts for n of 3 and more, else eight. Where an independent 5 % of calls
//     fail or hang it opens by chance less than once in 100 months.
//   - Half-open, it has exactly the configured number of probes, however many ask. A probe that never reports loses its slot when its lease
//     ends. Results of an earlier state are dropped. A second completion does nothing.
//   - The hook runs outside all locks, in order; it may panic and may call back.
//   - Nothing here starts a goroutine or reads a clock: every method takes the time. Times must come from one clock.
//
// For many things to protect, keyed by name and with other limits, use [github.com/caisson-go/caisson/pools.Destinations].
package breaker
