// Package dlqcmd has the commands that find, follow, show, replay, purge, export and import dead letters: those of dlq-replay, and the command dlq of
// every worker program.
//
// Guarantees:
//
//   - Nothing is lost, whenever a command is killed or interrupted: a message is published and confirmed before its entry leaves the dead
//     state. A kill in between publishes at most one batch again, with the same job id, key and run, so that claims make it harmless.
//   - Repeating a command, or running it twice at once, replays no entry twice.
//   - What has completed meanwhile, by its key, is not run again unless --force says so.
//   - Replays, purges, imports and exports are recorded before they begin, where dead letters live in a store.
//   - What only a store can do is refused, with the way to one, where dead letters live in the broker.
//   - import stores an entry before it leaves the broker.
//   - replay, purge and import ask first. Where nobody can be asked they need --yes.
//   - Payloads are shown, exported and replayed byte for byte.
package dlqcmd
