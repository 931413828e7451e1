// Package endpointtest is the conformance suite of [endpoints.Store]: it proves the guarantees that the port states, for any implementation.
//
// A store's own test is
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: open, Age: age})
//	}
//
// Nothing is skipped: a store passes all of it or fails. The suite never assumes an empty store.
package endpointtest
