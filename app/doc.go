// Package app is the whole worker program around your handlers: commands, flags, configuration, brokers and the admin server.
//
// Guarantees:
//
//   - Your binary behaves as the stock one does: same commands, configuration keys, variables, exit codes and output. New brokers and
//     settings reach it with the next version of this module.
//   - What is wrong with the configuration or the registration is refused at the start, all at once, each with its key and the way out;
//     nothing runs with a default in place of a mistyped setting.
//   - SIGINT or SIGTERM stops gracefully: running jobs finish within stop.grace, are then cancelled, and are abandoned after stop.hard.
//     What has not started is given back without an attempt spent. A second signal exits at once; leases and claims then run out.
//   - Everything is closed in the right order and only after the worker has settled what it held: no finished job runs again because its
//     ack was still in a buffer.
//
// [Main] is all that a program needs. [Run] is the same without the signals and the exit, for tests.
//
// docs/cli.md describes the commands, docs/configuration.md the settings.
package app
