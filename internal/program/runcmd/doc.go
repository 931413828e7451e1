// Package runcmd has the commands that run a program's jobs, and those that say what would run: run, relay, config and version.
//
// Guarantees:
//
//   - config check refuses what run would refuse, and touches neither file nor broker.
//   - config print masks secrets.
package runcmd
