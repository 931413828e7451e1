// Package jobtest tests handlers on a real worker: in memory, in virtual time, with faults at will.
//
// Guarantees:
//
//   - The worker, the broker, the claims and the dead letters are the real ones; only the file is missing. What passes here passes there.
//   - Nothing runs until the test says so: [Bench.Work] runs one delivery, [Bench.Advance] lets time pass, [Bench.Drain] runs
//     everything to its end. Between these calls the worker takes no job, so that a test sees each step.
//   - Time is virtual: an hour of backoff costs microseconds, and a 30 s timeout is exact.
//   - A failure says what was expected, what happened, and where the job is now.
//
// A test runs inside a bubble of [testing/synctest]:
//
//	func TestMail(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			bench := jobtest.New(t, registry, jobtest.Config{})
//			id := bench.Enqueue(Mail.New(Letter{To: "ada@example.com"}))
//			if s := bench.Work(); s.Outcome != worker.OutcomeSucceeded {
//				t.Error(bench.Where(id))
//			}
//		})
//	}
//
// Faults: [Bench.Kill] crashes the worker, [Bench.Restart] stops it properly, [Bench.Isolate] cuts its network, [Bench.ExpireLease] and [Bench.Duplicate] do what brokers do,
// [Bench.SetDown] and [Bench.Force] make a destination sick, [Bench.Break] takes broker or stores away.
//
// What it does not do: handlers must not wait for the network or anything else outside the bubble, since time then stands still; use
// in-memory fakes, and [Bench.Reach] for destinations. A handler that never returns must be let go before the test ends.
package jobtest
