// Package truncate shortens texts that come from elsewhere, such as errors, for stores, headers and pages.
//
// Guarantees:
//
//   - The result is valid UTF-8 of at most the bytes asked for, cut between two runes.
//   - A text that was cut says so at its end; the limit needs room for that, 9 bytes.
package truncate
