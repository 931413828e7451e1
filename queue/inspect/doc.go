// Package inspect defines what operators ask of a message broker, beyond what a worker needs: where a message is, what is wrong with a
// queue, which figures the driver keeps, and which queues nobody needs any more.
//
// Guarantees that every driver gives that implements a part of it:
//
//   - [Inspector], [Finder] and [Gauges] change nothing.
//   - [Pruner] removes no queue with a message in it.
//   - What could not be looked at is an error, never an empty answer.
//
// Each interface is optional: ask with a type assertion on the [queue.Broker].
package inspect
