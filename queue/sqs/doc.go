// Package sqs keeps queues in Amazon SQS, standard and FIFO.
//
// Guarantees beyond those of package queue:
//
//   - What was published, acked, retried or released before [Broker.Close] has reached SQS when Close returns, also what waited for others to share
//     its request.
//   - A lease never outlives SQS's own: it counts from before the request was sent, and nothing is asked for beyond the 12 hours from the receive.
//   - A message that is put back as a copy is deleted only after the copy was confirmed. Copies keep the id, the time of enqueueing and the counts.
//   - Body bytes and headers come back as they were, also those that SQS refuses: these are encoded, and marked as such.
//   - Messages of other producers keep their attributes with name, type and value.
//
// What SQS does not give: exactly-once delivery, and a refusal of calls that arrive late on a standard queue. The driver judges lateness by its own
// deadline just before it sends; a call that is delayed on the network beyond that may still take effect.
package sqs
