// Package sqlite is the status store in the embedded SQLite file: for the workers of one host.
//
// Guarantees, beyond those of [fleet.StatusStore]:
//
//   - A report joins the commits of others and waits for no disk of its own.
//   - Several processes on one host may share the file. Its clock is the host's.
//   - Reports of workers that died are removed by those that live.
package sqlite
