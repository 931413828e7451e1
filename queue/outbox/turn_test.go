package outbox

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestTablesTakeTurns has a writer that committed late in the table that was to be truncated, and one that keeps its transaction open: the table
// stays until both are published.
func TestTablesTakeTurns(t *testing.T) {
	t.Parallel()
	const q = "jobs"
	r := newEmbedded(t)
	r.queue(q)
	relay := r.idleRelay(RelayConfig{})
	relay.turnSize = 1
	tidy := func() {
		t.Helper()
		if err := relay.tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pass := func() (turn int, sizes [2]int64) {
		t.Helper()
		for {
			found, _, err := relay.cycle(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !found {
				break
			}
		}
		if err := r.pool.QueryRow(t.Context(), relay.sql.sizes, relay.sql.tables[0], relay.sql.tables[1]).Scan(&turn, &sizes[0], &sizes[1]); err != nil {
			t.Fatal(err)
		}
		return turn, sizes
	}
	r.enqueue(text(q, "first"))
	late, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.box.Enqueue(t.Context(), late, text(q, "late")); err != nil {
		t.Fatal(err)
	}
	tidy() // the other table is empty and takes its turn
	if turn, sizes := pass(); turn != 1 || sizes[0] == 0 {
		t.Fatalf("turn %d, sizes %d", turn, sizes)
	}
	r.enqueue(text(q, "second"))
	tidy() // nothing to see in the first table, but a writer is in it
	if turn, sizes := pass(); turn != 1 || sizes[0] == 0 || sizes[1] == 0 {
		t.Fatalf("turn %d, sizes %d", turn, sizes)
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	tidy() // a row is in it
	if got := r.stats().Fresh; got != 1 {
		t.Fatalf("%d fresh jobs", got)
	}
	pass()
	tidy()
	if turn, sizes := pass(); turn != 0 || sizes[0] != 0 {
		t.Fatalf("turn %d, sizes %d", turn, sizes)
	}
	tidy()
	got := bodies(r.receive(q, 3))
	if fmt.Sprint(got) != "[first second late]" {
		t.Errorf("received %q", got)
	}
}

// TestTurnsUnderLoad changes turns while jobs are enqueued and relayed, until it has seen some.
func TestTurnsUnderLoad(t *testing.T) {
	t.Parallel()
	const q, writers, turns = "jobs", 3, 6
	r := newEmbedded(t)
	r.queue(q)
	relay := r.idleRelay(RelayConfig{})
	relay.turnSize = 1
	r.relay(RelayConfig{Parallel: 2})
	var seen, jobs atomic.Int64
	deadline := time.Now().Add(testTimeout)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for seen.Load() < turns && time.Now().Before(deadline) {
				r.enqueue(text(q, "a"), text(q, "b"))
				jobs.Add(2)
			}
		})
	}
	for last := 0; seen.Load() < turns; {
		if time.Now().After(deadline) {
			t.Fatalf("%d turns", seen.Load())
		}
		if err := relay.tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		var turn int
		if err := r.pool.QueryRow(t.Context(), "SELECT turn FROM "+pgx.Identifier{r.schema, "outbox_turn"}.Sanitize()).Scan(&turn); err != nil {
			t.Fatal(err)
		}
		if turn != last {
			last = turn
			seen.Add(1)
		}
	}
	wg.Wait()
	r.receive(q, int(jobs.Load()))
	r.drained()
	depth, err := r.broker.Depth(t.Context(), q)
	if err != nil || depth.Ready.N != 0 {
		t.Errorf("left in the queue: %+v, %v", depth, err)
	}
}
