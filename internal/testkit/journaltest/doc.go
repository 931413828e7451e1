// Package journaltest is the conformance suite of [journal.Store] and [ordering.Queues]: it proves the guarantees that the packages state, for any
// implementation.
//
// A store's own test is
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: open})
//	}
//
// Nothing is skipped: a store passes all of it or fails. The suite never assumes an empty store and never moves a store's clock: it
// lets time pass, virtually where the store's clock is the process's own, really where it is a server's.
package journaltest
