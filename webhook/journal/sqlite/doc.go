// Package sqlite keeps webhook events, attempts and ordered queues in the embedded SQLite file.
//
// Guarantees, beyond those of [journal.Store] and [ordering.Queues]:
//
//   - An event that PutEvent reported as kept, and every change of an ordered queue, survives a power cut. A power cut may lose the
//     attempts of the last moments.
//   - Several processes on one host may share the file.
//   - What is expired goes in small steps, so that a large journal never holds up the workers that share the file.
//   - Lists walk an index. Times are kept in microseconds, in UTC.
package sqlite
