// Package headers writes the headers of a dead letter for a store.
//
// Guarantees:
//
//   - Any bytes come back.
//   - The same headers give the same bytes.
//   - Damaged bytes are an error, never other headers.
package headers
