// Command dlq-replay finds, follows, shows, replays, purges, exports and imports dead letters. It reads the worker's configuration.
//
// It is the command dlq of every worker program as a program of its own, for hosts without one. Package internal/program/dlqcmd states the
// guarantees.
package main
