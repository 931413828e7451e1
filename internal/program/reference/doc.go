// Package reference writes the tables of docs that come from the code: keys of the configuration, commands with their flags, metrics.
//
// What it guarantees:
//
//   - A page holds each table between two markers, and nothing outside them is touched. What people write stays beside it.
//   - The same code gives the same bytes. A test fails when a page is stale; make docs mends it.
//   - Keys come from the tags of the configuration's fields, commands from what --help prints, metrics from the collectors' own descriptions.
package reference

//go:generate go run ./write
