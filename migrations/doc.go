// Package migrations makes and upgrades Caisson's tables in PostgreSQL.
//
// Guarantees:
//
//   - Every table lives in one schema of the caller's choice, and nothing outside it is touched.
//   - A step is applied whole or not at all. Any number of processes may call [Up] at once: each step is applied once.
//   - A step waits at most 10 s for tables that others use, so that it never holds up a fleet behind it; a step that fails has changed nothing.
//   - [Check] lets a program refuse tables that are older or newer than it knows, and says what to do.
//   - No session state is used: it works through a pooler in transaction mode.
//
// The steps are in sql/, NNNN_name.up.sql and NNNN_name.down.sql, which says in its first line what is lost. They name no schema: a step runs with
// the search path set to it. Only
// ever add steps; one that was released is never changed.
package migrations
