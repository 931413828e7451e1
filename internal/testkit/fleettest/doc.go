// Package fleettest is the conformance suite of [fleet.StatusStore]: it proves the guarantees that package fleet states, for any implementation.
//
// A status store's own test is
//
//	func TestConformance(t *testing.T) {
//		fleettest.Run(t, fleettest.Harness{Open: open})
//	}
//
// Nothing is skipped: a status store passes all of it or fails. The suite never assumes an empty status store.
package fleettest
