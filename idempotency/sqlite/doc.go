// Package sqlite keeps claims and the attempt ledger in a SQLite file.
//
// In the file of the embedded queue, a job's completion and its ack are one transaction:
//
//	broker, err := embedded.Open(ctx, embedded.Config{Path: "caisson.db"})
//	claims, err := sqlite.Open(ctx, sqlite.Config{Path: broker.Path()})
//
// Beside a networked broker, for workers on one host:
//
//	broker, err := rabbitmq.Open(ctx, rabbitmq.Config{URLs: []string{"amqp://localhost"}})
//	claims, err := sqlite.Open(ctx, sqlite.Config{Path: "claims.db", Sync: "full"})
//
// Guarantees, beyond those of [idempotency.Store]:
//
//   - A call that returned survives the death of the process (kill -9, crash).
//   - Several processes on one host may share the file: claims fence them against each other. Over a network file system they may not.
//   - A power cut may undo the last calls together, newest first, if the file's sync mode is "mixed": a job may run again whose
//     ack was lost as well. The state is never corrupt, and attempts never rise above what was charged. In mode "full" nothing is undone.
//
// A job whose key is its own id, the common case, is one row in the table of keys, ledger included: one insert claims it and one
// update completes it. Any other (job, run) has its ledger in the table of runs. A row gives its ledger up to that table as soon as
// another run or job takes its key.
//
// The clock is the host's. It should not be set back by more than a lease while workers run.
package sqlite
