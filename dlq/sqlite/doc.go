// Package sqlite keeps dead letters and held jobs in the embedded SQLite file.
//
// Guarantees, beyond those of [dlq.Store]:
//
//   - What Put, Resolve and Purge reported as done survives a power cut; a reservation survives the death of the process.
//   - Several processes on one host may share the file.
//   - Purge and Expire work in small steps, so that a large DLQ never holds up the workers that share the file.
//   - Times are kept in microseconds, in UTC.
//
// Entries and their messages are two tables: lists, groups and counts never read a payload.
package sqlite
