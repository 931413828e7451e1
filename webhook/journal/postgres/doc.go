// Package postgres keeps webhook events, attempts and ordered queues in PostgreSQL 13 or newer.
//
// Guarantees, beyond those of [journal.Store] and [ordering.Queues]:
//
//   - An event that PutEvent reported as kept, and every change of an ordered queue, survives the death of the process and of the server.
//   - Any number of processes may use the tables at once: an id is kept once, also while generations are opened. Times of events and
//     queues are the database's, in microseconds.
//   - Events and attempts are expired by dropping partitions whole, and leave no bloat behind; see [Store.Expire].
//   - Lists by tenant, endpoint or event walk an index, however many rows there are and whatever the server's statistics say.
//   - No session state is used: it works through a pooler in transaction mode.
//   - Errors that pass are [journal.ErrUnavailable].
//
// The tables are those of package migrations. The database's encoding must be UTF8.
package postgres
