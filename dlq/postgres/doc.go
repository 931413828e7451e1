// Package postgres keeps dead letters, held jobs and the audit log in PostgreSQL 13 or newer.
//
// Guarantees, beyond those of [dlq.Store] and [audit.Log]:
//
//   - What was reported as done survives the death of the process and of the server.
//   - Any number of processes may use the tables at once: an entry is stored once, however many put it at the same moment, and reserved
//     for one owner at a time. Times are the database's, in microseconds.
//   - Any bytes come back: ids, names, keys, headers and bodies are kept as bytes, errors with their NULs.
//   - A filter by JSON finds what [jsonmatch.All] finds, also in bodies that jsonb refuses.
//   - Entries are expired by dropping partitions whole; see [Store.Expire]. Nothing held or reserved is dropped, nor what changed later.
//   - No session state is used: it works through a pooler in transaction mode.
//   - Errors that pass are [dlq.ErrUnavailable]. An entry that the database refuses fails alone.
//
// The tables are those of package migrations. The database's encoding must be UTF8. Bodies of up to [MaxPayload] bytes that are JSON are
// kept twice, as bytes and as jsonb with an index. Larger ones, and those with what jsonb refuses (NUL, half of a surrogate pair, bytes
// that are not UTF-8, very large numbers, very deep nesting), are read by the store when a filter by JSON asks for them. The time of
// such a filter grows with their number and size; for a filter that is asked again, as a replay does, they are read once.
//
// A text filter folds the case of ASCII letters; a NUL in an error is found as U+FFFD.
package postgres
