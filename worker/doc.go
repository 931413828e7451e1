// Package worker runs jobs: it leases messages from a broker, guards their handlers, and settles what became of them.
//
// Guarantees:
//
//   - A job is never lost. Its message leaves the queue only after its result, its dead letter or its hold is stored.
//   - A keyed job has at most one completed run per key, and no two runs of a key overlap while their claims are valid.
//   - What a handler of a keyed kind writes in its claim's transaction is stored exactly once: together with the completion of its key, or not at all.
//   - Waiting never counts as failing: a job that was put back untried (breaker open, pool full, rate limit, not due, stop) spends no attempt.
//   - A crash spends an attempt, so that a job that kills its process ends in the dead letters instead of looping.
//   - A sick destination costs only its own jobs; a kind with a bulkhead never takes more than its share of slots.
//   - Run returns only after every goroutine it started has ended, handlers that ignore their context excepted: those are named in the
//     error that it returns, and their jobs are given back.
//
// A handler takes that transaction from its context by the function of its store, such as TxFrom of idempotency/postgres. It is begun at the first
// call, so that jobs that take none pay nothing. The worker ends it before anything else is made of the handler's answer: it commits after a nil,
// and rolls back after an error of any kind, a panic, a timeout, a lost claim or a stop. A commit that fails fails the attempt, which is spent
// unless the store was away. While it is unknown whether it committed, the worker asks the store. From the commit on the key is completed, whatever becomes of the ack.
// A handler that is abandoned loses its transaction at once, and its late success counts for nothing if it had asked for one.
//
// How to read it: attempt.go holds the flow of one job, top to bottom. classify.go turns an error into an [Outcome], plan.go an
// outcome into a settlement, settle.go carries it out. Nothing else decides. Two others complete a claim: commit (tx.go), together with the
// handler's writes, and completeLate (handle.go), after a handler was abandoned.
//
// A program defines a [Kind], registers a plain function for it with [Handle], and runs a [Worker]; producers enqueue with a [Client].
package worker
