package queuetest

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// Harness describes one driver to the suite.
type Harness struct {
	// Want is what the driver must declare, pinned in the driver's own test. Capabilities must equal it for the suite's queues.
	Want queue.Capabilities

	// New makes fresh, empty storage and returns a function that opens a broker over it. The suite closes each broker that
	// it opened. It calls open once, again after a close where Durable is set, and twice at once where Shared is set.
	// New registers its own cleanups on t. Required.
	New func(t testing.TB) (open func() queue.Broker)

	// Durable pins that messages outlive Close and are there when the storage is opened again.
	Durable bool
	// LeasesOutliveClose pins that a lease left unsettled at Close hides its message until the deadline. A broker that
	// ties leases to the connection gives the message back at once and leaves this false.
	LeasesOutliveClose bool
	// Shared pins that several brokers can be open on one storage at a time and see the same queues.
	Shared bool
	// Fenced pins that the driver itself refuses a call on a lease whose message went on to another holder, also when
	// that call was delayed on the way and passed [queue.Lease]'s own check of the deadline.
	Fenced bool
	// CountsDeliveries pins that [queue.Lease.DeliveryCount] is known. Where it is false the count must be 0.
	CountsDeliveries bool
	// StampsEnqueued pins that [queue.Lease.EnqueuedAt] is known. Where it is false the time must be zero.
	StampsEnqueued bool
	// HidesInFlight pins that a retried message counts as in flight, not as delayed, until its delay is over. Brokers that hide it by
	// its lease cannot tell the two apart.
	HidesInFlight bool

	// Cut breaks the connections of every broker that is open on the newest storage of New, and returns when they can be made again.
	// Leases may or may not survive that. Nil if there are no connections.
	Cut func(t testing.TB)

	// Parallel runs the cases side by side. New must then be safe to call while other cases run, and Cut must break the connections of the
	// case that its t belongs to.
	Parallel bool

	// Virtual runs each case in a testing/synctest bubble. The driver must then start its goroutines when it is opened, and wait
	// only on channels and on package time.
	Virtual bool
	// QueueName maps the suite's queue names (lower-case letters, digits and hyphens, at most 60 bytes) to names that the
	// broker takes. Nil leaves them.
	QueueName func(name string) string

	// Lease is the short lease whose end the suite waits for. Zero means 1 s.
	Lease time.Duration
	// Hold is a lease that does not end during a case. Zero means 30 s. It must be at least three times Wait.
	Hold time.Duration
	// Wait is how long something that must happen may take, beyond leases and delays. Zero means 10 s.
	Wait time.Duration
	// Quiet is how long the suite watches for what must not happen. Zero means 300 ms.
	Quiet time.Duration
	// Delay is the delay of delayed publishes and retries. Zero means 1 s.
	Delay time.Duration
	// Early is how much before its time a broker may show a message, because its clock is coarse. Zero means never.
	Early time.Duration
	// Poll is how often counts that may lag are read until they are right or Wait is over. Zero means 50 ms.
	Poll time.Duration
	// BigBody is the size in bytes of the largest body that must pass. Zero means 1 MiB.
	BigBody int
	// Many is how many messages the largest case moves. Zero means 10,000 where the environment has SOAK, else 2,000.
	Many int
}

func (h Harness) withDefaults() Harness {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&h.Lease, time.Second)
	set(&h.Hold, 30*time.Second)
	set(&h.Wait, 10*time.Second)
	set(&h.Quiet, 300*time.Millisecond)
	set(&h.Delay, time.Second)
	set(&h.Poll, 50*time.Millisecond)
	if h.BigBody == 0 {
		h.BigBody = 1 << 20
	}
	if h.Many == 0 {
		if h.Many = 2000; os.Getenv("SOAK") != "" {
			h.Many = 10_000
		}
	}
	if h.QueueName == nil {
		h.QueueName = func(name string) string { return name }
	}
	return h
}

func (h Harness) validate() error {
	want := h.Want
	switch {
	case h.New == nil:
		return errors.New("Harness.New is nil: give a function that makes fresh storage")
	case want.Name == "":
		return errors.New("Harness.Want.Name is empty: pin the driver's name")
	case h.Hold < 3*h.Wait:
		return fmt.Errorf("Harness.Hold %v is less than three times Wait %v: a held lease could end during a case", h.Hold, h.Wait)
	case want.MaxLease > 0 && want.MaxLease < h.Hold:
		return fmt.Errorf("Harness.Want.MaxLease %v is below Hold %v: lower Hold and Wait", want.MaxLease, h.Hold)
	case want.MaxDelay > 0 && want.MaxDelay < h.Delay, want.MaxRetryDelay > 0 && want.MaxRetryDelay < h.Delay:
		return fmt.Errorf("Harness.Want.MaxDelay %v or MaxRetryDelay %v is below Delay %v: lower Delay", want.MaxDelay, want.MaxRetryDelay, h.Delay)
	case want.MaxBody > 0 && want.MaxBody < h.BigBody:
		return fmt.Errorf("Harness.Want.MaxBody %d is below BigBody %d: lower BigBody", want.MaxBody, h.BigBody)
	case want.FIFO && want.MaxDelay > 0:
		return errors.New("Harness.Want.MaxDelay is set with FIFO: such a queue takes no delays of messages at all")
	case h.Parallel && h.Virtual:
		return errors.New("Harness.Parallel with Virtual: a case in a bubble takes no time, run them one after the other")
	case h.LeasesOutliveClose && !h.Durable:
		return errors.New("Harness.LeasesOutliveClose needs Durable")
	}
	return nil
}

// Run proves that the driver behind h keeps the contract of package queue. Each case is a subtest with storage of
// its own.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h = h.withDefaults()
	if err := h.validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.applies != nil && !c.applies(h) {
			t.Logf("%s does not apply to what the harness pins", c.name)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if h.Parallel {
				t.Parallel()
			}
			if h.Virtual {
				synctest.Test(t, func(t *testing.T) { c.run(newEnv(t, h)) })
				return
			}
			c.run(newEnv(t, h))
		})
	}
}

// testCase is one provable sentence of the contract.
type testCase struct {
	name string
	// applies decides from pinned values alone whether the sentence concerns the driver. Nil means always.
	applies func(Harness) bool
	run     func(*env)
}

// cases lists the suite in the order in which it runs: the simple ones first, so that the first failure is the
// most telling.
var cases = []testCase{
	{name: "Capabilities", run: caseCapabilities},
	{name: "CreateQueueAgain", run: caseCreateQueueAgain},
	{name: "QueuesAreListed", run: caseQueuesAreListed},
	{name: "UnknownQueue", run: caseUnknownQueue},

	{name: "BytesUnchanged", run: caseBytesUnchanged},
	{name: "HeadersKept", run: caseHeadersKept},
	{name: "LeaseFields", run: caseLeaseFields},
	{name: "PublishNothing", run: casePublishNothing},
	{name: "PublishResultsInOrder", run: casePublishResultsInOrder},
	{name: "PublishDoneContext", run: casePublishDoneContext},
	{name: "PublishTooLarge", applies: limitsBody, run: casePublishTooLarge},
	{name: "PublishDelayed", applies: not(fifo), run: casePublishDelayed},
	{name: "PublishNegativeDelay", run: casePublishNegativeDelay},
	{name: "PublishDelayTooLong", applies: limitsDelay, run: casePublishDelayTooLong},

	{name: "AckNeverReappears", run: caseAckNeverReappears},
	{name: "UnsettledReappears", run: caseUnsettledReappears},
	{name: "ExtendPostpones", run: caseExtendPostpones},
	{name: "RetryHonoursDelay", run: caseRetryHonoursDelay},
	{name: "RetryWithoutDelay", run: caseRetryWithoutDelay},
	{name: "RetryDelayTooLong", applies: limitsRetry, run: caseRetryDelayTooLong},
	{name: "ReleaseIsImmediate", run: caseReleaseIsImmediate},
	{name: "ExpiredLeaseIsLost", run: caseExpiredLeaseIsLost},
	{name: "SettledOnce", run: caseSettledOnce},
	{name: "StaleCallChangesNothing", applies: fenced, run: caseStaleCallChangesNothing},
	{name: "LeaseTooLong", applies: limitsLease, run: caseLeaseTooLong},
	{name: "Ceiling", run: caseCeiling},
	{name: "CeilingEndsTheLease", applies: waitsForCeiling, run: caseCeilingEndsTheLease},

	{name: "ReceiveTakesNoMoreThanAsked", run: caseReceiveTakesNoMoreThanAsked},
	{name: "SlotsBoundWhatIsHeld", run: caseSlotsBoundWhatIsHeld},
	{name: "ReceiveWaitsForPublish", run: caseReceiveWaitsForPublish},
	{name: "CancelledReceive", run: caseCancelledReceive},
	{name: "CancelledReceiveLosesNothing", run: caseCancelledReceiveLosesNothing},
	{name: "Order", applies: ordered, run: caseOrder},
	{name: "DeliveryCount", run: caseDeliveryCount},
	{name: "Attempts", applies: countsAttempts, run: caseAttempts},
	{name: "AttemptsUnknown", applies: not(countsAttempts), run: caseAttemptsUnknown},
	{name: "Depth", run: caseDepth},

	{name: "FIFOLeasedHead", applies: fifo, run: caseFIFOLeasedHead},
	{name: "FIFORetriedHead", applies: fifo, run: caseFIFORetriedHead},
	{name: "FIFOReleasedHead", applies: fifo, run: caseFIFOReleasedHead},
	{name: "FIFOLostHead", applies: fifo, run: caseFIFOLostHead},
	{name: "FIFOOrder", applies: fifo, run: caseFIFOOrder},
	{name: "FIFODropsDuplicates", applies: fifo, run: caseFIFODropsDuplicates},
	{name: "FIFORefusesDelay", applies: fifo, run: caseFIFORefusesDelay},

	{name: "CloseSubscription", run: caseCloseSubscription},
	{name: "CloseBroker", run: caseCloseBroker},
	{name: "LeasesOutliveSubscription", run: caseLeasesOutliveSubscription},
	{name: "DurableAcrossReopen", applies: durable, run: caseDurableAcrossReopen},
	{name: "LeasesOutliveClose", applies: leasesOutliveClose, run: caseLeasesOutliveClose},
	{name: "TwoBrokersShareQueues", applies: shared, run: caseTwoBrokersShareQueues},

	{name: "Cut", applies: canCut, run: caseCut},

	{name: "ReceiversNeverShare", run: caseReceiversNeverShare},
	{name: "TenThousandMessages", run: caseTenThousandMessages},
}

func limitsBody(h Harness) bool         { return h.Want.MaxBody > 0 }
func limitsDelay(h Harness) bool        { return h.Want.MaxDelay > 0 }
func limitsRetry(h Harness) bool        { return h.Want.MaxRetryDelay > 0 }
func limitsLease(h Harness) bool        { return h.Want.MaxLease > 0 }
func ordered(h Harness) bool            { return h.Want.Ordered && !h.Want.FIFO } // FIFO has cases of its own
func fifo(h Harness) bool               { return h.Want.FIFO }
func canCut(h Harness) bool             { return h.Cut != nil }
func waitsForCeiling(h Harness) bool    { return h.Virtual && h.Want.MaxLease > 0 }
func countsAttempts(h Harness) bool     { return h.Want.CountsAttempts }
func fenced(h Harness) bool             { return h.Fenced }
func durable(h Harness) bool            { return h.Durable }
func leasesOutliveClose(h Harness) bool { return h.LeasesOutliveClose }
func shared(h Harness) bool             { return h.Shared }

func not(f func(Harness) bool) func(Harness) bool {
	return func(h Harness) bool { return !f(h) }
}
