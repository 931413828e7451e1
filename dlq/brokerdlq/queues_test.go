package brokerdlq_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/testkit/brokerdlqtest"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
)

func TestMain(m *testing.M) {
	if dir := killChildDir(); dir != "" {
		killChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func inMemory(t *testing.T) *embedded.Broker {
	t.Helper()
	b, err := embedded.Open(t.Context(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, b)
	return b
}

func closed(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func newStore(t *testing.T) dlq.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, store)
	return store
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	brokerdlqtest.Run(t, brokerdlqtest.Harness{Broker: func(t *testing.T) queue.Broker { return inMemory(t) }, Store: newStore, Bubble: true})
}

func TestInFile(t *testing.T) {
	t.Parallel()
	brokerdlqtest.Run(t, brokerdlqtest.Harness{
		Broker: func(t *testing.T) queue.Broker {
			b, err := embedded.Open(t.Context(), embedded.Config{Path: filepath.Join(t.TempDir(), "q.db")})
			if err != nil {
				t.Fatal(err)
			}
			closed(t, b)
			return b
		},
		Store: newStore,
		Idle:  time.Second,
	})
}
