// Package outbox enqueues jobs in the caller's own PostgreSQL transaction, and publishes them to any broker once it has committed.
//
// Guarantees:
//
//   - A transaction that rolls back enqueues nothing. One that commits has all of its jobs published, byte for byte, headers included.
//   - A job is deleted after the broker has confirmed it, never before. Relays may be killed at any moment: nothing is lost, and what a
//     relay had under way (at most [RelayConfig.Batch] jobs) may be published twice, with the same job id and the same DedupID.
//   - No row is passed over: relays look for what is there, not for what is above the last id, so transactions may commit in any order.
//   - Jobs of one queue with one [Job.OrderingKey] are published one after the other, each once its predecessor was confirmed, by however
//     many relays. A job that cannot be published holds up its key and nothing else. A double may come late; the first copies come in order.
//   - What the broker refuses is tried again with growing delays, then parked: it is counted, logged and kept with its last error, and
//     never dropped. A broker that is away or blocked costs no attempt, and is asked again after pauses of at most 5 s.
//   - No transaction is open while the broker is asked, so a slow broker holds back no vacuum. Relays lease shards of the table for a
//     short time and fence what they write.
//   - Everything but [RelayConfig.DirectURL] works through a pooler in transaction mode.
//
// The order of a key is that of the calls of [Box.Enqueue], for transactions that follow one another. For transactions that overlap it is not
// defined, as long as nothing serialises them: lock the row that the key stands for (SELECT ... FOR UPDATE) before enqueuing.
//
// A job with a delay is published at once, with what is left of the delay and at most the broker's longest one; a typed client's envelope
// carries the rest. On a FIFO queue, which takes no delays, it waits here until it is due.
//
// The tables are part of package migrations. A [Box] enqueues, directly or as the broker of a worker.Client ([Box.In]). A [Relay] publishes. It
// runs anywhere: beside workers, in the program that enqueues, or alone.
package outbox
