// Package queue defines what Caisson asks of a message broker.
//
// Guarantees that every driver gives, and that [queuetest] proves for each:
//
//   - A message that Publish confirmed is delivered until somebody acks it. No crash of a worker loses it.
//   - Body bytes arrive as they were published, byte for byte.
//   - At any moment at most one live [Lease] exists for a message. When its deadline passes the message becomes
//     visible again, and every later call on the old lease returns [ErrLeaseLost].
//   - A lease is settled once. A second settlement returns [ErrSettled].
//   - A cancelled or closed receive loses nothing: what it had already leased is returned to the caller or given back.
//
// What the drivers do not promise: exactly-once delivery. A message may be delivered more than once, also after
// an ack (a broker restart, a lost response). Package idempotency turns that into at most one completed run.
//
// The package holds the port ([Broker], [Subscription], [Handle]), the value types that cross it ([Message],
// [Lease], [Depth]), and the [Envelope], the published wire format of a job.
//
// [queuetest]: https://pkg.go.dev/github.com/caisson-go/caisson/queue/queuetest
package queue
