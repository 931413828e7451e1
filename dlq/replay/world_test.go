package replay_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
)

func TestMain(m *testing.M) {
	if told := os.Getenv(replayChildEnv); told != "" {
		replayChild(told)
		return
	}
	goleak.VerifyTestMain(m)
}

// putLetters puts the dead letters of jobs 0 to n-1.
func putLetters(t testing.TB, store dlq.Store, n int) {
	t.Helper()
	entries := make([]dlq.Entry, n)
	for i := range entries {
		entries[i] = dlqtest.Letter(t, i, nil)
	}
	dlqtest.PutAll(t, store, entries...)
}

func runReplay(ctx context.Context, t testing.TB, cfg replay.Config) (replay.Report, error) {
	t.Helper()
	r, err := replay.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r.Run(ctx)
}

func wantCounts(t testing.TB, store dlq.Store, dead, replayed int) {
	t.Helper()
	for state, want := range map[dlq.State]int{dlq.StateDead: dead, dlq.StateReplayed: replayed} {
		n, err := store.Count(t.Context(), dlq.Filter{States: []dlq.State{state}})
		if err != nil || n != want {
			t.Errorf("%d entries are %s, %v, want %d", n, state, err, want)
		}
	}
}

// wantEachOnce fails unless run 1 of jobs 0 to n-1 was confirmed exactly once each.
func wantEachOnce(t *testing.T, b *dlqtest.Broker, n int) {
	t.Helper()
	jobs := b.Jobs(t)
	for i := range n {
		if id := fmt.Sprintf("job-%d.1", i); jobs[id] != 1 {
			t.Errorf("%s was published %d times", id, jobs[id])
		}
	}
	if len(jobs) != n {
		t.Errorf("%d jobs were published, want %d", len(jobs), n)
	}
}
