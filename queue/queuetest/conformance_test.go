package queuetest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/caisson-go/caisson/queue"
)

func memHarness(f memFaults) Harness {
	var s *memStore
	return Harness{
		Want: memCapabilities(false),
		New: func(testing.TB) func() queue.Broker {
			s = newMemStore(f)
			newest := s
			return func() queue.Broker { return openMem(newest) }
		},
		Cut:     func(testing.TB) { s.cut() },
		Durable: true, LeasesOutliveClose: true, Shared: true, Fenced: true, CountsDeliveries: true, StampsEnqueued: true,
		Virtual: true,
	}
}

// fifoHarness is memHarness with queues that keep the order of groups.
func fifoHarness(f memFaults) Harness {
	var s *memStore
	h := memHarness(f)
	h.Want, h.HidesInFlight = memCapabilities(true), true
	h.New = func(testing.TB) func() queue.Broker {
		s = newMemStore(f)
		s.fifo = true
		newest := s
		return func() queue.Broker { return openMem(newest) }
	}
	h.Cut = func(testing.TB) { s.cut() }
	return h
}

// TestConformance shows that the suite can be passed, and with which little code.
func TestConformance(t *testing.T) {
	Run(t, memHarness(memFaults{}))
	t.Run("FIFO", func(t *testing.T) { Run(t, fifoHarness(memFaults{})) })
}

// memFaults break one sentence of the contract each.
type memFaults struct {
	losesOnCancel, ignoresRetryDelay, redeliversAcked, sharesLeases, manglesBytes, dropsHeaders, declaresLess bool
	neverExpires, expiresEarly, ignoresExtend, unfenced, acceptsTooLarge, batchFailsWhole, ignoresDelay       bool
	cutsDelay, alwaysCharges, neverCharges, extendCharges, zeroForUnknown, closeDoesNotUnblock, ignoresSlots  bool
	reverses, loseOnReopen, createTruncates, releasesLate, settlesNothing, losesRetried, takesAnyLease        bool
	deliveriesStay, noCeiling, ceilingTooLate, showsGroup                                                     bool

	// Connections.
	losesLeased, deafAfterCut, staysUnhealthy, staleTags, saysYesAfterCut bool
	// FIFO.
	overtakesLeased, overtakesRetried, overtakesLost, stallsQueue, swapsGroup bool
	keepsDuplicates, dedupsByGroup, forgetsAcked, hidesGroup                  bool
}

func (f memFaults) mangle(body []byte) []byte {
	if f.manglesBytes {
		return []byte(strings.ToValidUTF8(string(body), "\ufffd"))
	}
	return body
}

// TestSuiteCatches runs the suite against brokers that are broken in one way each: the named cases must fail.
func TestSuiteCatches(t *testing.T) {
	for _, m := range []struct {
		name   string
		faults memFaults
		by     []string
	}{
		{"loses on cancel", memFaults{losesOnCancel: true}, []string{"CancelledReceive", "CancelledReceiveLosesNothing"}},
		{"ignores the retry delay", memFaults{ignoresRetryDelay: true}, []string{"RetryHonoursDelay"}},
		{"redelivers acked", memFaults{redeliversAcked: true}, []string{"AckNeverReappears", "SettledOnce"}},
		{"settles nothing", memFaults{settlesNothing: true}, []string{"AckNeverReappears", "ReleaseIsImmediate"}},
		{"shares leases", memFaults{sharesLeases: true}, []string{"ReceiversNeverShare", "LeasesOutliveSubscription"}},
		{"mangles bytes", memFaults{manglesBytes: true}, []string{"BytesUnchanged"}},
		{"drops headers", memFaults{dropsHeaders: true}, []string{"HeadersKept"}},
		{"declares less than is pinned", memFaults{declaresLess: true}, []string{"Capabilities"}},
		{"never expires", memFaults{neverExpires: true}, []string{"UnsettledReappears", "ExpiredLeaseIsLost", "LeasesOutliveClose"}},
		{"expires early", memFaults{expiresEarly: true}, []string{"UnsettledReappears", "LeasesOutliveClose"}},
		{"ignores extend", memFaults{ignoresExtend: true}, []string{"ExtendPostpones"}},
		{"lets stale calls through", memFaults{unfenced: true}, []string{"StaleCallChangesNothing"}},
		{"accepts too large", memFaults{acceptsTooLarge: true}, []string{"PublishTooLarge"}},
		{"fails the rest of a batch", memFaults{batchFailsWhole: true}, []string{"PublishTooLarge", "PublishDelayTooLong"}},
		{"ignores the delay", memFaults{ignoresDelay: true}, []string{"PublishDelayed"}},
		{"takes any delay", memFaults{cutsDelay: true}, []string{"PublishDelayTooLong", "RetryDelayTooLong"}},
		{"takes any lease", memFaults{takesAnyLease: true}, []string{"LeaseTooLong"}},
		{"always charges", memFaults{alwaysCharges: true}, []string{"Attempts"}},
		{"never charges", memFaults{neverCharges: true}, []string{"Attempts"}},
		{"charges for extensions", memFaults{extendCharges: true}, []string{"Attempts"}},
		{"counts no redelivery", memFaults{deliveriesStay: true}, []string{"DeliveryCount"}},
		{"says zero for unknown", memFaults{zeroForUnknown: true}, []string{"Depth", "QueuesAreListed"}},
		{"does not unblock on close", memFaults{closeDoesNotUnblock: true}, []string{"CloseSubscription", "CloseBroker"}},
		{"ignores slots", memFaults{ignoresSlots: true}, []string{"SlotsBoundWhatIsHeld"}},
		{"reverses the order", memFaults{reverses: true}, []string{"Order"}},
		{"loses on reopen", memFaults{loseOnReopen: true}, []string{"DurableAcrossReopen", "LeasesOutliveClose"}},
		{"empties a queue that is there", memFaults{createTruncates: true}, []string{"CreateQueueAgain"}},
		{"releases late", memFaults{releasesLate: true}, []string{"ReleaseIsImmediate"}},
		{"loses retried", memFaults{losesRetried: true}, []string{"RetryHonoursDelay", "RetryWithoutDelay", "SettledOnce"}},
		{"has no ceiling", memFaults{noCeiling: true}, []string{"Ceiling", "CeilingEndsTheLease"}},
		{"has too late a ceiling", memFaults{ceilingTooLate: true}, []string{"Ceiling", "CeilingEndsTheLease"}},
		{"shows a group without order", memFaults{showsGroup: true}, []string{"LeaseFields"}},
		{"loses what is leased in a cut", memFaults{losesLeased: true}, []string{"Cut"}},
		{"is deaf after a cut", memFaults{deafAfterCut: true}, []string{"Cut"}},
		{"is unhealthy after a cut", memFaults{staysUnhealthy: true}, []string{"Cut"}},
		{"settles another message after a cut", memFaults{staleTags: true}, []string{"Cut"}},
		{"says yes to whatever comes after a cut", memFaults{saysYesAfterCut: true}, []string{"Cut"}},
	} {
		catches(t, memHarness(m.faults), m.name, m.by)
	}
}

// TestSuiteCatchesFIFO does the same with queues that keep the order of groups.
func TestSuiteCatchesFIFO(t *testing.T) {
	for _, m := range []struct {
		name   string
		faults memFaults
		by     []string
	}{
		{"overtakes a leased head", memFaults{overtakesLeased: true}, []string{"FIFOLeasedHead"}},
		{"overtakes a retried head", memFaults{overtakesRetried: true}, []string{"FIFORetriedHead"}},
		{"overtakes a lost head", memFaults{overtakesLost: true}, []string{"FIFOLostHead"}},
		{"stalls the whole queue", memFaults{stallsQueue: true}, []string{"FIFOLeasedHead", "FIFORetriedHead", "FIFOLostHead"}},
		{"swaps within a group", memFaults{swapsGroup: true}, []string{"FIFOLeasedHead", "FIFOReleasedHead", "FIFOOrder"}},
		{"releases late", memFaults{releasesLate: true}, []string{"FIFOReleasedHead"}},
		{"keeps duplicates", memFaults{keepsDuplicates: true}, []string{"FIFODropsDuplicates"}},
		{"drops by group", memFaults{dedupsByGroup: true}, []string{"FIFODropsDuplicates", "FIFOOrder"}},
		{"forgets the id of what was acked", memFaults{forgetsAcked: true}, []string{"FIFODropsDuplicates"}},
		{"takes a delay", memFaults{cutsDelay: true}, []string{"FIFORefusesDelay"}},
		{"hides the group", memFaults{hidesGroup: true}, []string{"LeaseFields"}},
	} {
		catches(t, fifoHarness(m.faults), m.name, m.by)
	}
}

func catches(t *testing.T, h Harness, fault string, by []string) {
	t.Helper()
	for _, name := range by {
		t.Run(fault+"/"+name, func(t *testing.T) {
			if log := runRecorded(t, h, name); len(log) == 0 {
				t.Errorf("case %s passed with a broker that %s", name, fault)
			}
		})
	}
}

// TestRecorderPasses guards TestSuiteCatches: without a fault the same recorder must record nothing.
func TestRecorderPasses(t *testing.T) {
	for form, h := range map[string]Harness{"plain": memHarness(memFaults{}), "FIFO": fifoHarness(memFaults{})} {
		for _, c := range cases {
			if c.applies != nil && !c.applies(h) || c.name == "TenThousandMessages" { // no fault is left to it
				continue
			}
			t.Run(form+"/"+c.name, func(t *testing.T) {
				if log := runRecorded(t, h, c.name); len(log) > 0 {
					t.Errorf("recorded: %q", log)
				}
			})
		}
	}
}

// runRecorded runs one case in a bubble and returns what it reported.
func runRecorded(t *testing.T, h Harness, name string) []string {
	h = h.withDefaults()
	i := slices.IndexFunc(cases, func(c testCase) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no case %q", name)
	}
	r := &recorder{}
	synctest.Test(t, func(t *testing.T) {
		r.TB = t
		done := make(chan struct{})
		go func() { // Fatal ends the goroutine
			defer close(done)
			cases[i].run(newEnv(r, h))
		}()
		<-done
		r.runCleanups()
	})
	return r.log
}

// recorder is a testing.TB that notes failures instead of failing.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	log      []string
	cleanups []func()
}

func (r *recorder) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, s)
}

func (r *recorder) Error(args ...any)            { r.note(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.note(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatal(args ...any)            { r.note(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) { r.note(fmt.Sprintf(f, args...)); runtime.Goexit() }
func (r *recorder) Fail()                        { r.note("Fail") }
func (r *recorder) FailNow()                     { r.note("FailNow"); runtime.Goexit() }
func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }

func (r *recorder) runCleanups() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}
