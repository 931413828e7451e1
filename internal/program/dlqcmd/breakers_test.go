package dlqcmd

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
)

// report has a worker tell the state of its breaker for shop.
func report(t *testing.T, s *backends.Set, state, override string) {
	t.Helper()
	r := fleet.Report{
		ID: "w", Owner: "w", Host: "h", PID: 1, Sent: time.Now(),
		Destinations: []fleet.Destination{{Name: "shop", State: state, Override: override}},
	}
	if err := s.Statuses.Publish(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// twoDestinations seeds two jobs for shop and one for bank.
func twoDestinations(t *testing.T) (string, *backends.Set) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "q.db")
	s := open(t, path)
	seed(t, s, letter(t, "a", "q", "work", []byte("a"), nil), letter(t, "b", "q", "work", []byte("b"), func(e *dlq.Entry) { e.Destination = "bank" }),
		letter(t, "c", "q", "work", []byte("c"), func(e *dlq.Entry) { e.Destination = "Shop" }))
	return path, s
}

func TestReplayWaitsForTheBreaker(t *testing.T) {
	t.Parallel()
	path, s := twoDestinations(t)
	report(t, s, "open", "")
	done := make(chan result, 1)
	go func() { done <- callWith(t, t.Context(), "replay", "--all", "--yes", "--wait-breaker", "--db", path) }()
	eventually.True(t, "the other destination's job is replayed", func() bool { return count(t, s, dlq.StateReplayed) > 0 })
	report(t, s, "half_open", "")
	select {
	case r := <-done:
		t.Fatalf("it did not wait: %d %s%s", r.code, r.out, r.err)
	case <-time.After(1500 * time.Millisecond): // longer than it asks
	}
	if n := count(t, s, dlq.StateReplayed); n != 1 {
		t.Errorf("%d replayed while the breaker is not closed", n)
	}
	report(t, s, "closed", "")
	if out := ok(t, <-done); out != "replayed 3 of 3\n" {
		t.Errorf("printed %q", out)
	}
}

func TestReplayGivesUpOnTheBreaker(t *testing.T) {
	t.Parallel()
	path, s := twoDestinations(t)
	args := []string{"replay", "--all", "--yes", "--wait-breaker", "--wait-breaker-for", "10ms", "--db", path}
	if r := call(t, args...); r.code != cli.Failure || !strings.Contains(r.err, "no running worker reports its breakers") || count(t, s, dlq.StateDead) != 3 {
		t.Errorf("without a worker: code %d, %d dead\n%s", r.code, count(t, s, dlq.StateDead), r.err)
	}
	report(t, s, "closed", "forced_open")
	if out := ok(t, call(t, "replay", "--all", "--dry-run", "--wait-breaker", "--db", path)); !strings.Contains(out, "would replay 1 jobs to queues q (1), for destinations bank (1); 2 held until breakers close, for ") {
		t.Errorf("dry run printed %q", out)
	}
	r := call(t, args...)
	if r.code != cli.Partial || r.out != "replayed 1 of 3, 2 held until their breakers close\n" || !strings.Contains(r.err, "breaker still open") {
		t.Errorf("code %d\n%s%s", r.code, r.out, r.err)
	}
	report(t, s, "open", "forced_closed")
	ok(t, call(t, args...))
	if r := call(t, "replay", "--all", "--yes", "--wait-breaker-for", "10ms", "--db", path); r.code != cli.Usage {
		t.Errorf("--wait-breaker-for alone: code %d", r.code)
	}
}
