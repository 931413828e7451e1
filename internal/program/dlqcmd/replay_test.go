package dlqcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// many seeds a store with n dead jobs of 4 KB and returns its path and the stack.
func many(t *testing.T, n int) (string, *backends.Set) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "q.db")
	s := open(t, path)
	manyIn(t, s, n)
	return path, s
}

// manyIn seeds a stack as many does.
func manyIn(t *testing.T, s *backends.Set, n int) {
	t.Helper()
	if err := s.Broker.CreateQueue(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	entries := make([]dlq.Entry, n)
	for i, id := range ids(n, "job") {
		entries[i] = letter(t, id, "q", "work", []byte(id+strings.Repeat(".", 4<<10)), nil)
	}
	if err := errors.Join(s.Letters.Put(t.Context(), entries)...); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, s *backends.Set, state dlq.State) int {
	t.Helper()
	n, err := s.Letters.Count(t.Context(), dlq.Filter{States: []dlq.State{state}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// published counts the messages of each job in queue q and checks that each is the job's next run, unchanged.
func published(t *testing.T, s *backends.Set) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, m := range drain(t, s, "q") {
		e, err := m.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		if e.Run != 1 || e.Headers["trace"] != "t" || string(m.Body) != e.ID+strings.Repeat(".", 4<<10) {
			t.Errorf("job %s came as run %d with headers %v and %d bytes", e.ID, e.Run, e.Headers, len(m.Body))
		}
		found[e.ID]++
	}
	return found
}

// lost returns the jobs that are neither in the queue nor dead, and how many messages are doubled.
func lost(t *testing.T, s *backends.Set, n int) (missing []string, doubled int) {
	t.Helper()
	found := published(t, s)
	for _, id := range ids(n, "job") {
		e, err := s.Letters.Get(t.Context(), dlq.EntryID(id, 0))
		if err != nil {
			t.Fatal(err)
		}
		if found[id] == 0 && e.State != dlq.StateDead {
			missing = append(missing, id)
		}
		if found[id] > 1 || found[id] == 1 && e.State == dlq.StateDead {
			doubled++ // published and still dead: the next replay publishes it again
		}
	}
	return missing, doubled
}

// spawn starts the tool as a process of its own.
func spawn(t *testing.T, args ...string) (*exec.Cmd, *screen) {
	t.Helper()
	return spawnAs(t, "1", args...)
}

func spawnAs(t *testing.T, program string, args ...string) (*exec.Cmd, *screen) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	errs := &screen{}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = []string{envProgram + "=" + program}
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, errs
}

// Field case G4 (a): killed in the middle, the tool has lost nothing and doubled at most one batch.
func TestKilledReplayLosesNothing(t *testing.T) {
	t.Parallel()
	const n = 150
	path, s := many(t, n)
	cmd, _ := spawn(t, "replay", "--all", "--yes", "--rate", "150", "--db", path)
	eventually.True(t, "a third is replayed", func() bool { return count(t, s, dlq.StateReplayed) >= n/3 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("it ended before it was killed: %v", err)
	}
	missing, doubled := lost(t, s, n)
	if len(missing) > 0 || doubled > 15 {
		t.Errorf("lost %v; %d doubled, want at most one batch of 15", missing, doubled)
	}
	r := call(t, "replay", "--all", "--yes", "--json", "--db", path)
	var report replay.Report
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatal(err)
	}
	// What the killed process had in hand is kept for a minute; nothing else is left.
	if left := count(t, s, dlq.StateDead); report.Left != left || left > 15 || (r.code == cli.Partial) != (left > 0) {
		t.Errorf("code %d, report %+v, %d still dead\n%s", r.code, report, left, r.err)
	}
}

// Field case G4 (b): ctrl-C ends the tool after a batch, it says how to go on, and the same command does.
func TestInterruptedReplayGoesOn(t *testing.T) {
	t.Parallel()
	const n = 150
	path, s := many(t, n)
	command := []string{"replay", "--all", "--yes", "--db", path}
	cmd, errs := spawn(t, append(command, "--rate", "150")...)
	eventually.True(t, "a third is replayed", func() bool { return count(t, s, dlq.StateReplayed) >= n/3 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != int(cli.Interrupted) || !strings.Contains(errs.String(), "run the same command again") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	ok(t, call(t, command...))
	found := published(t, s)
	for _, id := range ids(n, "job") {
		if found[id] != 1 {
			t.Errorf("job %s was published %d times", id, found[id])
		}
	}
	if dead := count(t, s, dlq.StateDead); dead != 0 {
		t.Errorf("%d are still dead", dead)
	}
}

// A rate next to nothing lets one job through, and no second one however long the tool runs.
func TestReplayKeepsToItsRate(t *testing.T) {
	t.Parallel()
	path := three(t)
	s := open(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan result, 1)
	go func() { done <- callWith(t, ctx, "replay", "--all", "--yes", "--rate", "0.00001", "--db", path) }()
	eventually.True(t, "the first is replayed", func() bool { return count(t, s, dlq.StateReplayed) > 0 })
	cancel()
	if r := <-done; r.code != cli.Interrupted || count(t, s, dlq.StateReplayed) != 1 {
		t.Errorf("code %d, %d replayed\n%s", r.code, count(t, s, dlq.StateReplayed), r.err)
	}
}

// Field case G4 (c): with a missing target nothing is removed.
func TestMissingTargetRemovesNothing(t *testing.T) {
	t.Parallel()
	path, s := many(t, 3)
	r := call(t, "replay", "--all", "--yes", "--to", "nowhere", "--db", path)
	if r.code != cli.Failure || !strings.Contains(r.err, "nowhere") || !strings.Contains(r.err, "create it") {
		t.Errorf("code %d\n%s%s", r.code, r.out, r.err)
	}
	if dead := count(t, s, dlq.StateDead); dead != 3 {
		t.Errorf("%d entries are dead, want all 3", dead)
	}
	ok(t, call(t, "replay", "--all", "--yes", "--to", "q", "--db", path))
	if found := published(t, s); len(found) != 3 {
		t.Errorf("published %v", found)
	}
}

func TestTwoReplaysAtOnce(t *testing.T) {
	t.Parallel()
	const n = 100
	path, s := many(t, n)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if r := call(t, "replay", "--all", "--yes", "--db", path); r.code != cli.OK && r.code != cli.Partial {
				t.Errorf("code %d: %s", r.code, r.err)
			}
		})
	}
	both.Wait()
	found := published(t, s)
	for _, id := range ids(n, "job") {
		if found[id] != 1 {
			t.Errorf("job %s was published %d times", id, found[id])
		}
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	db := three(t)
	out := ok(t, call(t, "replay", "--all", "--dry-run", "--db", db))
	if want := "would replay 3 jobs to queues mail (2), hooks (1), for destinations shop (2)\n"; out != want {
		t.Errorf("printed %q, want %q", out, want)
	}
	var result replayResult
	if err := json.Unmarshal([]byte(ok(t, call(t, "replay", "--kind", "email.send", "--to", "mail", "--dry-run", "--json", "--db", db))), &result); err != nil {
		t.Fatal(err)
	}
	want := replayResult{
		Report: replay.Report{
			ID: result.ID, DryRun: true, Matched: 2, Replayed: 2, Queues: map[string]int{"mail": 2}, Destinations: map[string]int{"shop": 2},
		},
	}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("--json (-want +got):\n%s", diff)
	}
	if got := listed(t, db); len(got) != 3 {
		t.Errorf("left: %v", got)
	}
}

// What cannot be read as a job cannot be replayed: it stays, with the reason, and the others go.
func TestRefusedEntriesStay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "q.db")
	s := open(t, path)
	broken := letter(t, "broken", "q", "work", []byte("x"), func(e *dlq.Entry) { e.Message.Headers[queue.HeaderEnvelope] = "{" })
	seed(t, s, letter(t, "good", "q", "work", []byte("y"), nil), broken)
	r := call(t, "replay", "--all", "--yes", "--db", path)
	if r.code != cli.Partial || !strings.Contains(r.err, "broken.0: the envelope cannot be read") || r.out != "replayed 1 of 2, 1 refused\n" {
		t.Errorf("code %d\n%s%s", r.code, r.out, r.err)
	}
	if diff := cmp.Diff([]string{"broken.0"}, listed(t, path)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if r := call(t, "replay", "--all", "--yes", "--db", path); r.code != cli.Failure {
		t.Errorf("with nothing but refused entries: code %d", r.code)
	}
}

// work runs a worker whose kind "work" answers with err, until the test ends.
func work(t *testing.T, db string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan cli.Code, 1)
	go func() {
		args := []string{"run", "--db", db, "--queues", "q", "--admin-addr", "off"}
		ended <- runWorker(ctx, args, io.Discard, func(r *worker.Registry) error {
			kind := worker.Kind[[]byte]{Name: "work", Config: worker.KindConfig{MaxAttempts: 1}}
			worker.Handle(r, kind, func(context.Context, []byte) error { return err })
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("worker's exit code %d", code)
		}
	})
}

func TestCanary(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err      error
		args     []string
		code     cli.Code
		replayed int
		text     string
	}{
		"dies again": {fmt.Errorf("still broken"), []string{"--canary", "4", "--max-fail", "20%"}, cli.Partial, 4, "canary failed: "},
		"lives":      {nil, []string{"--canary", "4"}, cli.OK, 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, s := many(t, 20)
			work(t, path, tt.err)
			r := call(t, append([]string{"replay", "--all", "--yes", "--db", path}, tt.args...)...)
			if r.code != tt.code || !strings.Contains(r.err, tt.text) || count(t, s, dlq.StateReplayed) != tt.replayed {
				t.Errorf("code %d, %d replayed, want %d, %d\n%s%s", r.code, count(t, s, dlq.StateReplayed), tt.code, tt.replayed, r.out, r.err)
			}
		})
	}
}
