// Package condition writes the conditions of a filter that are the same SQL in every store of dead letters.
//
// Guarantees:
//
//   - What it writes holds words of this module only, never text of a caller, and needs no arguments.
//   - The dead letters' table is called d.
//
// A store adds what States returns to the conditions of its own.
package condition
