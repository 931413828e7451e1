// Package pgdb is what the packages with tables in PostgreSQL share: opening a pool, transactions, telling errors that pass from those that stay, and
// generations of rows.
//
// Guarantees:
//
//   - Nothing here needs session state: with [Config.Pooler] every statement works through PgBouncer in transaction mode.
//   - An error never shows a password.
//   - Rows of [Generations] go away by dropping partitions, never one by one; what is still needed moves forward. Two writers of one key
//     never use different generations, whatever their clocks say.
//   - A pool is opened without asking the server: a database that is away is met by the first query, as [ErrUnavailable].
package pgdb
