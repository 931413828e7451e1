package journal_test

import (
	"context"
	"flag"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/journal/sqlite"
)

func TestMain(m *testing.M) {
	flag.Parse()
	checks := "20" // each runs real workers
	if testing.Short() {
		checks = "3"
	}
	if !given("rapid.checks") {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// given reports whether a flag is on the command line.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// openStore returns a real store in memory.
func openStore(t *testing.T) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// faulty is a store that can be struck.
type faulty struct {
	journal.Store
	mu      sync.Mutex
	err     error         // of Log
	gate    chan struct{} // Log waits for it, if set
	batches []int
	expired int
}

func (f *faulty) strike(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *faulty) Log(ctx context.Context, attempts []journal.Attempt) error {
	f.mu.Lock()
	err, gate := f.err, f.gate
	f.batches = append(f.batches, len(attempts))
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	return f.Store.Log(ctx, attempts)
}

func (f *faulty) sizes() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]int(nil), f.batches...)
}
