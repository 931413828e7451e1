// Package cursor writes and reads the place in a list of dead letters, or of audit records, from which the next page goes on. It survives
// that rows come and go: it names a time and a number, not a count.
package cursor
