// Package truncate shortens texts that come from elsewhere, such as errors, for stores, headers and pages.
//
// Guarantees:
//
//   - The result is valid UTF-8 of at most the bytes asked for, cut between two runes.
//   - [Text] says at the end that it was cut; the limit needs room for that, 9 bytes. [Cut] does not.
package truncate
