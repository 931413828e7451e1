// Package jsonmatch tells whether a payload holds a value at a path, without decoding it.
//
// Guarantees:
//
//   - A payload that is not JSON (RFC 8259, at most 10,000 levels deep) matches nothing.
//   - Numbers are compared by their exact value, of any size: 1 is 1.0 and 10e-1, and 9007199254740993 is not 9007199254740992.
//   - Strings are compared after their escapes are resolved. What is not valid UTF-8, or half of a surrogate pair, counts as U+FFFD.
//   - Where an object has a key twice, the last one counts.
//   - [Match.String] gives an expression that [Parse] reads as the same match.
//
// Stores of dead letters answer as [All] does; their suite compares both.
package jsonmatch
