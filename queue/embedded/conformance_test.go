package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/testkit/sqlitetest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/queuetest"
)

// pinned is what the driver must declare.
var pinned = queue.Capabilities{
	Name:           "embedded",
	MaxBody:        16 << 20,
	Ordered:        true,
	CountsAttempts: true,
	SingleHost:     true,
	Depth:          queue.DepthFieldReady | queue.DepthFieldDelayed | queue.DepthFieldInFlight,
}

// TestConformance moves many messages with SOAK only: each waits for the disk. In memory it always does.
func TestConformance(t *testing.T) {
	t.Parallel()
	many := 2000
	if os.Getenv("SOAK") != "" {
		many = 10_000
	}
	for _, sync := range []string{"mixed", "full"} {
		t.Run(sync, func(t *testing.T) {
			t.Parallel()
			queuetest.Run(t, queuetest.Harness{
				Want: pinned,
				New: func(t testing.TB) func() queue.Broker {
					path := filepath.Join(t.TempDir(), "queue.db")
					return func() queue.Broker { // each as in a process of its own
						b, err := Open(t.Context(), Config{Path: sqlitetest.Apart(t, path), Sync: sync})
						if err != nil {
							t.Fatal(err)
						}
						return b
					}
				},
				Parallel:           true,
				Many:               many,
				Durable:            true,
				LeasesOutliveClose: true,
				Shared:             true,
				Fenced:             true,
				CountsDeliveries:   true,
				StampsEnqueued:     true,
				Lease:              500 * time.Millisecond,
				Delay:              500 * time.Millisecond,
				Quiet:              100 * time.Millisecond,
			})
		})
	}
}

// TestConformanceInMemory runs in bubbles, with all brokers of a case on one file in memory.
func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Harness{
		Want: pinned,
		New: func(t testing.TB) func() queue.Broker {
			file, err := sqlitefile.OpenMemory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := file.Close(); err != nil {
					t.Error(err)
				}
			})
			return func() queue.Broker {
				b, err := Open(t.Context(), Config{Path: file.Path()})
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
		},
		Durable:            true, // as long as the file is open
		LeasesOutliveClose: true,
		Shared:             true,
		Fenced:             true,
		CountsDeliveries:   true,
		StampsEnqueued:     true,
		Virtual:            true,
	})
}
