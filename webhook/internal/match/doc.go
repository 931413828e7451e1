// Package match finds who wants an event without asking everybody.
//
// It promises:
//
//   - [Index.Match] names exactly those whose patterns select a type, each once and sorted.
//   - Its cost grows with the words of the type and with those who match, not with how many there are.
package match
