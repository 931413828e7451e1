// Package postgres is the registry of webhook endpoints in PostgreSQL: for a fleet.
//
// Guarantees, beyond those of [endpoints.Store]:
//
//   - Revisions are in the order of commits: a transaction that changes an endpoint takes its revision from one row, which it holds until it ends. So a
//     mirror that asks for what is newer than the last revision that it saw misses nothing. Changes wait for each other; reads and reports do not.
//     A change whose client falls silent half-way is undone after 5 s.
//   - No session state is used: it works through a pooler in transaction mode.
//   - What workers report of endpoints is one statement for all of them, and locks rows in one order, so that reports do not deadlock.
//   - Nothing that is secret of an endpoint is in the database in the clear, nor was it ever: it comes here sealed.
package postgres
