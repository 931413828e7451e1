// Command dlq-replay finds, shows, replays, purges and exports dead letters. It reads the worker's configuration.
//
// Guarantees:
//
//   - Nothing is lost, whenever the tool is killed or interrupted: a message is published and confirmed before its entry leaves the dead
//     state. A kill in between publishes at most one batch again, with the same job id, key and run, so that claims make it harmless.
//   - Repeating a command, or running it twice at once, replays no entry twice.
//   - replay and purge ask first. Where nobody can be asked they need --yes.
//   - Payloads are shown, exported and replayed byte for byte.
package main
