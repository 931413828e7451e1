// Package queuetest is the conformance suite that every [queue.Broker] passes, and a decorator that puts
// faults into any of them.
//
// What the suite guarantees about a driver that passes:
//
//   - Every sentence of package queue's contract that can be seen from outside was tried against the real broker.
//   - Nothing passed by being skipped. The driver's test pins what the driver must declare in [Harness.Want]; a
//     broker that declares anything else fails, and only the pinned values decide which cases apply.
//   - No case depends on how fast the machine is. Times are lower bounds (not before) or generous upper bounds.
//
// A driver calls it from one test, so that go test ./queue/... -run TestConformance runs all drivers:
//
//	func TestConformance(t *testing.T) {
//		queuetest.Run(t, queuetest.Harness{
//			Want: queue.Capabilities{Name: "mine", MaxDelay: 15 * time.Minute},
//			New: func(t testing.TB) func() queue.Broker {
//				dir := t.TempDir()
//				return func() queue.Broker { return open(t, dir) }
//			},
//			Durable: true,
//		})
//	}
//
// Drivers whose time is the process's own set [Harness.Virtual]: each case then runs in a testing/synctest bubble and
// takes no real time. Others use short leases, one to two seconds.
//
// [FaultBroker] makes publishes, receives and settlements fail before or after they took effect, doubles messages,
// takes leases away and delays calls, at exactly the calls that a [Plan] chooses.
package queuetest
