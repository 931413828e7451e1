// Package postgres is the status store in PostgreSQL.
//
// Guarantees, beyond those of [fleet.StatusStore]:
//
//   - A report is one statement on one row, without session state: it works through a pooler in transaction mode.
//   - The table is unlogged: a report writes nothing to the write-ahead log and waits for no disk, and none of it goes to standbys. After a crash
//     or a failover the table is empty until the workers publish again, which takes two seconds. Reports are worth nothing after ten.
//   - No index holds what changes, and pages keep room free, so that a report replaces the last one in place (HOT) without work for vacuum.
//   - Reports of workers that died are removed by those that live.
//
// Reports cannot be read from a standby. While a transaction stays open on the server, PostgreSQL keeps the versions that reports replace: some
// 200 MB an hour for each 300 workers, which autovacuum frees afterwards.
package postgres
