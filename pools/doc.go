// Package pools keeps a sick or slow dependency from taking down what does not need it: bulkheads per kind, and breakers, limits and
// retry budgets per destination. The policies themselves are in the packages below it.
//
// Guarantees, each of them a test:
//
//   - A refusal burns nothing. [Destinations.Admit] takes a concurrency permit, a rate token, retry budget and a breaker permit
//     together or not at all; [Destinations.Peek] takes nothing and remembers nothing.
//   - No permit is lost or made up: not by a cancelled wait, a resize, a new configuration, a second [Permit.Done].
//   - Hooks run outside all locks, in order; they may panic and may call back.
//   - A registry never holds more destinations than its maximum, and never forgets one that is open, overridden, throttled or in use.
//   - A call to a slow destination starts only while the slow lane counts fewer calls than it has slots, one to a new destination only
//     while it counts fewer than twice as many. A destination that is neither is never refused because of it ([SlowLaneConfig]).
//   - What other workers say makes a shared destination wait no longer than they said, and is gone with the next word ([Destinations.Share]).
//   - A sheddable call never takes the last places, nor a place while one of a higher [Class] waits and something runs.
//   - Nothing here starts a goroutine or a timer, or reads a clock: every method takes the time. The exceptions are
//     [Bulkhead.Acquire], which waits, and [Call], which makes calls.
//
// Times must come from one clock. Times with a monotonic reading ([time.Now]) are immune to a wall clock that is set.
package pools
