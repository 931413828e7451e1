// Package record is the state machine of claims and ledgers that stores in databases share. A store loads a [Record], lets one method
// change it, and saves what that method says.
//
// Guarantees:
//
//   - The package is pure: no clock, no database. Callers pass the time.
//   - A method that returns an error or [Nothing] has changed nothing.
package record
