package sqs_test

import (
	"os"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/queue/sqs"
)

// What the driver must declare.
var (
	pinnedStandard = queue.Capabilities{
		Name:           "sqs",
		MaxDelay:       15 * time.Minute,
		MaxLease:       12 * time.Hour,
		MaxBody:        1<<20 - 4096,
		CountsAttempts: true,
		Depth:          queue.DepthFieldReady | queue.DepthFieldDelayed | queue.DepthFieldInFlight,
	}
	pinnedFIFO = queue.Capabilities{
		Name:          "sqs",
		MaxRetryDelay: 12 * time.Hour,
		MaxLease:      12 * time.Hour,
		MaxBody:       1<<20 - 4096,
		FIFO:          true,
		Depth:         queue.DepthFieldReady | queue.DepthFieldDelayed | queue.DepthFieldInFlight,
	}
)

// TestConformance runs against a real server, where each case has queues of its own. Moving many messages is long with SOAK only: in bubbles,
// which cost no requests, it is always.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name string
		want queue.Capabilities
	}{{"standard", pinnedStandard}, {"fifo", pinnedFIFO}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			h := harness(kind.want)
			h.Parallel = true
			if os.Getenv("SOAK") == "" {
				h.Many = 1000
			}
			h.New = func(t testing.TB) func() queue.Broker {
				cfg := realConfig(t)
				return func() queue.Broker { return open(t, cfg) }
			}
			queuetest.Run(t, h)
		})
	}
}

// TestConformanceInBubbles runs the suite against a server that refuses what SQS refuses, and waits for the 12 hours to be over.
func TestConformanceInBubbles(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name  string
		want  queue.Capabilities
		batch int
	}{{"standard", pinnedStandard, 1}, {"fifo", pinnedFIFO, 1}, {"fifo in batches", pinnedFIFO, 10}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var line *cuttable
			h := harness(kind.want)
			h.Virtual = true
			h.Many = 2000
			h.New = func(t testing.TB) func() queue.Broker {
				line = &cuttable{next: sqstest.NewServer()}
				newest := line
				return func() queue.Broker { return open(t, fakeConfig(newest, sqs.Config{FIFOBatch: kind.batch})) }
			}
			h.Cut = func(testing.TB) { line.cut() }
			queuetest.Run(t, h)
		})
	}
}

func harness(want queue.Capabilities) queuetest.Harness {
	return queuetest.Harness{
		Want: want,
		QueueName: func(name string) string {
			if want.FIFO {
				return name + ".fifo"
			}
			return name
		},
		Durable:            true,
		LeasesOutliveClose: true,
		Shared:             true,
		Fenced:             true,
		CountsDeliveries:   true,
		StampsEnqueued:     true,
		HidesInFlight:      true,
		BigBody:            700 << 10, // as base64 it just fits
		Poll:               200 * time.Millisecond,
	}
}
