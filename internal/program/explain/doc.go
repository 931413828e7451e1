// Package explain has the command that says why a job is where it is.
//
// Guarantees:
//
//   - It changes nothing and takes nothing from a queue.
//   - What is sure comes before what is likely, and a note says what could not be looked at.
//
// explain.go has the command, diagnosis.go gathers what is known, job.go sorts it by job, and status.go judges.
package explain
