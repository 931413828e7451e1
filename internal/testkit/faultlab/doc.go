// Package faultlab is the one load and the one check behind every test that breaks something under a working worker.
//
// What a test on it proves, on any broker:
//
//   - No job is lost: each one is completed or a dead letter in the end.
//   - No handler runs after the attempt that was completed, and no two attempts of one job overlap.
//   - Attempts are counted as documented: they rise by one, skip a number only where a process was killed between the claim and the
//     handler, and stay within the maximum.
//
// The handlers themselves write down each run when it starts and when it ends ([Book]); [Ledger.Check] holds that against the claim
// store and the dead letters. Nothing is taken from what the worker says about itself. The check is tried on a worker that acks before it
// completes: it must be found out.
//
// There are two uses. [Matrix] runs a worker in the test's own process and injects one [Fault] after another while jobs are enqueued
// and worked, and wants the worker to consume again soon, with as many goroutines and connections as before. [KillRound] runs worker
// processes, this test binary started again ([Main]), and kills them with SIGKILL. Claims and dead letters are kept in a SQLite file
// beside the broker, shared by all processes ([Stack]). Tests with processes and a ledger of another kind start and kill them with [StartChild].
package faultlab
