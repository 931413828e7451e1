// Package queuecmd has the commands that look after queues: list, create and doctor.
//
// Guarantees:
//
//   - list and doctor change nothing.
//   - The doctor judges queues as a worker of the same program and configuration does at its start.
package queuecmd
