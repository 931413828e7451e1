// Package runtime is the one assembled process: a worker or a relay, with its broker and stores, its admin server, and what runs beside it.
//
// Guarantees:
//
//   - [Open] refuses what cannot work before a file is made or a broker is reached.
//   - The admin server answers while broker and store are waited for, and until the last job is settled. [Runtime.Ready] says what is missing.
//   - Broker and stores are closed after the worker has settled what it held.
//
// Start with [Runtime.Run]. assembly.go makes the worker of a configuration, and one file each has what runs beside it: reporter.go, sweep.go,
// relay.go.
package runtime
