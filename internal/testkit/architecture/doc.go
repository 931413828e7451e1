// Package architecture holds the rules that docs/architecture.md states about the shape of the repository, as tests.
//
// What holds when its tests pass:
//
//   - Imports go downwards only, never sideways. A package may also import its parent and its own internal parts.
//   - Floor 0 needs the standard library and golang.org/x/{sync,time} only. worker knows no driver, no store and no SQL.
//   - What only tests need (queuetest, storetest, jobtest, internal/testkit) is imported by tests only.
//   - Every package says in its doc.go what it promises.
//   - Files stay small, and nothing new appears at the top level by accident.
//
// A new package needs a row in places; a package without one fails the test.
package architecture
