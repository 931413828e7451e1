// Package pools keeps a sick or slow dependency from taking down what does not need it: bulkheads per kind, breakers and
// limits per destination, retry budgets.
//
// Guarantees, each of them a test:
//
//   - A refusal burns nothing. [Destinations.Admit] takes a concurrency permit, a rate token, retry budget and a breaker permit
//     together or not at all; [Destinations.Peek] takes nothing and remembers nothing.
//   - No permit is lost or made up: not by a cancelled wait, a resize, a new configuration, a second [Permit.Done].
//   - A breaker counts completed calls in the bucket in which they completed, compares in integers, and opens at the threshold
//     and not below it, with the minimum of calls and not with fewer. What is [OutcomeIgnored] moves nothing.
//   - A half-open breaker has exactly the configured number of probes, however many ask. A probe that never reports loses
//     its slot when its lease ends. Results of an earlier state are dropped.
//   - Hooks run outside all locks, in order; they may panic and may call back.
//   - A registry never holds more destinations than its maximum, and never forgets one that is open, overridden, gated or in use.
//   - A call to a slow destination starts only while the slow lane counts fewer calls than it has slots, one to a new destination only while it counts
//     fewer than twice as many. A destination that is neither is never refused because of it ([SlowLaneConfig]).
//   - An adaptive limit stays between its floor and what is configured ([AdaptiveConfig]), an adaptive timeout between floor and ceiling, and calls
//     that it cut off never lower it ([AdaptiveTimeoutConfig]).
//   - What other workers say makes a shared destination wait no longer than they said, and is gone with the next word ([Destinations.Share]).
//   - A call of a lower [Class] never takes the last places, nor a place while one of a higher class waits in line and something runs.
//   - Nothing here starts a goroutine or a timer, or reads a clock: every method takes the time. The exceptions are
//     [Bulkhead.Acquire], which waits, and [Call], which makes calls.
//
// Times must come from one clock. Times with a monotonic reading ([time.Now]) are immune to a wall clock that is set.
package pools
