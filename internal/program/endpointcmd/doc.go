// Package endpointcmd holds the commands that look after webhook endpoints, publish events, and show what became of them: worker endpoints, worker events.
//
// What it guarantees:
//
//   - The commands work on the store that the configuration names, as workers do, and need no worker and no admin server. Those that enqueue
//     nothing need no broker either, so that an endpoint can be paused while it is away.
//   - Endpoints are read and printed in the forms of the JSON API, with the same checks: what one refuses, the other refuses.
//   - A secret is printed once, by the command that made it. It is read from a file or standard input, never from a flag, which other users of the
//     machine could read. What may be secret besides is printed by no command.
//   - import checks every endpoint before it changes the first.
//
// [Commands] returns the commands for a program's root.
package endpointcmd
