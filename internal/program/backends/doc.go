// Package backends opens what a configuration names: the broker, the claim store and the dead-letter store that belong together.
//
// What it guarantees:
//
//   - Every program opens the same things for the same configuration, so that what a worker wrote a tool finds.
//   - [Set.Close] closes in the right order, once, and reports everything that went wrong.
//   - A tool that only looks never creates a file: see [Existing].
//
// A kind of broker is one row in drivers; nothing else in the programs knows which ones there are.
// [Offline] is for checks: it knows what the configured broker could do and opens nothing.
package backends
