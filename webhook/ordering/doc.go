// Package ordering sends the events of endpoints that ask for order one after the other.
//
// Guarantees:
//
//   - An event is enqueued for the first time once the one before it was delivered or given up, over crashes too.
//   - No queue waits for ever: a delivery that is at the head for longer than [Config.MaxAge] is given up.
//   - Other endpoints cost nothing.
//
// Each endpoint that asks for order has an ordered queue, which [Queues] keeps; the stores of package webhook/journal do. Only the head of a queue
// has a job. What is sent again by hand (resends, replays of dead letters) waits in no queue.
//
// Make one [Dispatcher] for each process that publishes or delivers. Hand it to publishers, and where deliveries are made to the worker as an
// observer; run it there.
package ordering
