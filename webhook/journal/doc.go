// Package journal remembers published events and the calls that delivered them, and sends them again.
//
// Guarantees:
//
//   - An event's body is kept byte for byte. An id that was published with one body and type is refused with another.
//   - Logging costs deliveries nothing but memory: calls are written behind, many at once. What cannot be written in time is dropped, and
//     counted; deliveries never wait for it.
//   - What is older than the retention is dropped without leaving bloat behind.
//   - Secrets of endpoints are in no record: excerpts and errors are cleaned before they get here.
//   - Resending sends an event to an endpoint that had it before. Recovering sends only what that has missed or given up, and may be repeated: as
//     long as idempotency keys and attempts are kept, nothing that was delivered is sent again by it.
//
// What it does not promise: that the log of calls is complete. A process that is killed loses the calls of its last second.
//
// Make a [Recorder] on a [Store], and hand its Observe to the sender and the store to the publisher. The stores in postgres and sqlite also keep the
// ordered queues of [ordering.Dispatcher]; both pass one suite. A [Recovery] is what tools call.
package journal
