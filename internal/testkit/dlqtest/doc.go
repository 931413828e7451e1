// Package dlqtest is the conformance suite of [dlq.Store] and audit.Log, and what tests of dead letters share: a [Broker] that records, a store
// in memory, benchmarks.
//
// A store's own test is
//
//	func TestConformance(t *testing.T) {
//		dlqtest.Run(t, dlqtest.Harness{Open: open})
//	}
//
// A store passes all of it or fails; nothing is skipped. The suite never assumes an empty store and never moves a store's clock: it lets time
// pass, in a bubble where the clock is the process's, really where it is a server's.
package dlqtest
