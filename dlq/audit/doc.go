// Package audit is the port for a record of what people do to many dead letters at once: who asked for a replay, a purge, an import or an
// export, what was selected, and how far it came.
//
// Guarantees of every [Log], held by the suite of the dead-letter stores:
//
//   - A record is written before the operation begins, and survives the death of the process.
//   - A process that dies leaves a record that shows as interrupted once it has been silent for [Record.Silence].
//   - The same operation continued under the same ID keeps one record.
package audit
