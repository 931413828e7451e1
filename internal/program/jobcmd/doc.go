// Package jobcmd has the command that puts jobs in queues.
//
// Guarantees:
//
//   - Payloads are taken byte for byte, and an id is printed once the broker has confirmed its job.
//   - Of several jobs each gets a result, in order, and of any number of them a few hundred are in memory.
package jobcmd
