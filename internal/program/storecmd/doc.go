// Package storecmd has the commands that look after the store postgres: migrate and outbox.
//
// Guarantees:
//
//   - Each step of a migration is applied whole or not at all, and repeating a command is safe.
//   - What deletes something asks first. Where nobody can be asked it needs --yes.
package storecmd
