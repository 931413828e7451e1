// Package dlq keeps the jobs that Caisson gave up on, and the jobs that wait for a sick destination, so that people can find,
// understand and replay them.
//
// Guarantees that every [Store] gives, and that the suite in storetest proves for each:
//
//   - An [Entry] is identified by (job, run), and by its payload where a job without a key came twice under one id. Putting it again changes nothing once it is dead, replayed or purged: a late
//     redelivery never reopens what an operator closed.
//   - Payload bytes and headers are kept and published as they were received, byte for byte.
//   - A [Reservation] gives entries to one owner at a time, so that two replays never publish the same entry at once.
//   - An entry leaves the dead state only after its message was confirmed by the queue (replayed) or by request (purged).
//
// [Replay] publishes first, waits for the confirmation, then marks. A crash in between publishes at most one batch again, with
// the same job id, key and run, so that claims make it harmless.
package dlq
