// Package dlq is the port for jobs that Caisson gave up on, and for jobs that are held until their destination recovers.
//
// Guarantees of every [Store], held by the suite in internal/testkit/dlqtest:
//
//   - One [Entry] stands for one run of a job, and for one payload where jobs without a key came twice under one id. Putting it again
//     changes nothing once it is dead, replayed or purged: a late redelivery never reopens what an operator closed.
//   - Bodies and headers are kept and published as they were received, byte for byte.
//   - A [Reservation] gives entries to one owner at a time: two replays never publish the same entry at once.
//   - An entry leaves the dead state only after the queue confirmed its message (replayed), or by request (purged).
//
// Package replay publishes dead entries again; [ReleaseHeld] does so with held ones. Package audit records what people do, and jsonmatch
// is how a [Filter] looks into payloads.
package dlq
