// Package sqlitefile owns one SQLite file: the embedded queue, the claims and the dead letters are tables on it.
//
// Guarantees:
//
//   - A write that [File.Write] reported as done survives the death of the process (kill -9, crash).
//   - A durable write survives a power cut as well. With [Full] every write does; with [Mixed] the last writes that were not
//     durable may be undone together, newest first, never one in the middle, and never one that a later durable write followed.
//   - Writes are atomic and serial, over all processes that use the file. One that fails costs only itself.
//   - A write that was cancelled before it was picked up has not happened. The answer never says less than what is known.
//   - A full disk or an I/O error is [ErrUnavailable]; what was committed stays, and writes work again once there is space.
//   - Space that deleted rows leave is used again, and given back to the disk while the file is idle.
//
// One file has one owner: all that a process opens by one path share its writer, and it closes with the last of them.
//
// It does not promise: survival of a disk that lies about flushing; use over a network file system.
//
// Writers share commits (group commit): one goroutine takes all the writes that wait, runs them in one transaction and waits
// for the disk once. A lone write is not delayed. Reads have connections of their own and do not wait for writers.
//
// Statements are prepared once per connection. A bare LIMIT ? makes SQLite plan its statement again whenever the value changes,
// which costs more than the statement: write LIMIT ?+0.
package sqlitefile
