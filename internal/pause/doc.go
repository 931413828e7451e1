// Package pause waits without outliving a context: [For] returns as soon as the time has passed or the context is done, whichever is first, and
// leaves no timer behind.
//
// Loops that try again use it, so that a stop never waits for a backoff.
package pause
