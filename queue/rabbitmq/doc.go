// Package rabbitmq keeps queues in RabbitMQ, 3.10 and later.
//
// What survives what:
//
//   - A publish without an error is on the disks of a majority of the queue's nodes: quorum queues, persistent messages, each confirmed.
//     A message for a queue that does not exist is refused, never dropped.
//   - A lost connection, a restarted or killed broker, a cancelled consumer, a channel that the broker closed: publishes that were not
//     confirmed fail with [queue.ErrUnavailable], leases are lost and their messages come again, and everything connects, declares and
//     consumes again by itself, for ever.
//   - A settlement belongs to the channel that brought the message. One that comes after the channel was lost is [queue.ErrLeaseLost] and is
//     never sent on another.
//   - An ack is written within microseconds and not answered by the broker: one that is lost with its connection shows as a redelivery. A
//     retry is a confirmed copy, then an ack: a crash between the two makes two messages, never none.
//   - A broker that takes no messages (memory or disk alarm) or does not answer: every call ends with its context, and a publish after about
//     a second in any case. Subscriptions hand out nothing meanwhile and are not healthy.
//   - Passwords are in no error and no log line.
//
// Beyond the contract of package queue:
//
//   - Leases are the driver's own: RabbitMQ has none. One that passes its deadline is given back. None outlives Config.ConsumerTimeout, after
//     which the broker would close the channel, nor its process.
//   - Attempts are counted across redeliveries, crashes of workers included: a receive charges one, an uncharged retry or release gives it back.
//   - A delay is never cut short. It is made longer by at most a tenth or a second, whichever is larger. It goes through a few queues, unseen.
//   - A subscription prefetches no more than its slots. What it got and nobody asked for goes back after a second without a Receive, with no
//     attempt charged.
//   - Messages of other programs are taken as they are: their properties and headers keep their types through retries. Expiration and user id
//     are dropped from copies, as are the broker's own headers.
//
// docs/rabbitmq.md tells what stands in the broker and what to do about faults.
package rabbitmq
