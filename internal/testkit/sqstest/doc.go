// Package sqstest is for tests of what talks to SQS: a small SQS in the process, and faults between a client and any SQS.
//
// What holds:
//
//   - [Server] and [Faults] are http.RoundTrippers. No socket is opened and no goroutine outlives its request, so both work in testing/synctest
//     bubbles, where twelve hours take no time.
//   - [Server] refuses what SQS refuses, where emulators are lenient: visibility beyond 12 hours from the receive, delays beyond 15 minutes, more
//     than 10 attributes, characters outside of XML's, messages and batches that are too large with their attributes, settlements of FIFO messages
//     with handles that are out of date. Attributes come only when they are asked for.
//   - [Faults] decides by the calls alone, never by chance or time: a plan sees each call with its number.
//
// [Server] leaves out what the driver does not use: policies, encryption, tags, move tasks. It checks no signatures.
package sqstest
