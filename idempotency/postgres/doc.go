// Package postgres keeps claims and the attempt ledger in PostgreSQL 13 or newer, shared by a fleet of workers.
//
// Guarantees, beyond those of [idempotency.Store]:
//
//   - A call that returned without an error is committed, and as durable as the server's synchronous_commit makes a commit.
//   - Keys, job ids, owners and results keep every byte: also NUL, invalid UTF-8 and values of any length. Rows are found by a hash of 16 bytes, and
//     the full bytes are compared: two keys with one hash get an error, never each other's claim.
//   - The database's clock alone decides leases, due times and expiry.
//   - Concurrent calls share round trips: those that come while a batch is under way go together after it. A call that finds none under way
//     leaves at once. A call whose context ends does not wait for its batch.
//   - No session state is used, and without prepared statements (pgx.QueryExecModeExec) it works through PgBouncer in transaction mode.
//   - Nothing unfinished is dropped: see below.
//
// While the database is away, starting, failing over, full, read-only or refuses connections, calls answer [idempotency.ErrUnavailable] with
// the cause, and may be repeated. Conflicts and deadlocks are repeated here. When a connection is cut after a batch was sent, nobody knows whether it was committed.
// Then it is tried again on another connection, twice: completions and extensions are the same when they are repeated, ends of attempts are
// recognised, and a claim is recognised by its token. If the database stays away, the batch answers ErrUnavailable; a claim that was committed
// all the same is given back, its attempt uncharged, once the database answers this process. If the process ends before, the claim answers Busy
// until its lease is over, and its attempt stays charged, as after any crash. So it does if the clocks of process and database are more than
// a minute apart.
//
// # Generations
//
// Rows lie in partitions that take new rows for a day and are dropped whole two days later ([Config]). [Store.Expire] opens and
// drops them; workers call it every minute, and any number may do so at once. Rows that are still needed, unfinished ones above all, move to the
// newest partition first and keep claim, attempts and history. So a key may be remembered for up to a day longer than its retention.
// See docs/adr/0010-claims-in-generations.md.
//
// A job whose key is its own id, the common case, is one row, ledger included: one insert claims it and one update completes it. Any other
// (job, run) has its ledger in the table of runs. If two workers that run different versions of a program claim the same run under different
// keys in the same instant, each key gets a ledger entry of its own.
//
// The view claims_readable shows keys as text.
package postgres
