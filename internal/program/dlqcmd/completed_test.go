package dlqcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/worker"
)

// complete completes the key of a job as another job that shares it would.
func complete(t *testing.T, s *backends.Set, key string, payload []byte) {
	t.Helper()
	k := idempotency.Key{Scope: "work", Value: key}
	c := s.Claims.Claim(t.Context(), []idempotency.Request{{Key: k, Job: "other-" + key, Fingerprint: idempotency.FingerprintOf(payload), Lease: time.Minute}})[0]
	if c.Status != idempotency.StatusAcquired {
		t.Fatalf("claim of %s is %s: %v", key, c.Status, c.Err)
	}
	held := idempotency.Handle{Key: k, Job: "other-" + key, Token: c.Token}
	if err := s.Claims.Complete(t.Context(), []idempotency.Completion{{Handle: held}})[0]; err != nil {
		t.Fatal(err)
	}
}

// effects counts runs of handlers by job.
type effects struct {
	mu   sync.Mutex
	runs map[string]int
}

func (e *effects) add(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runs == nil {
		e.runs = map[string]int{}
	}
	e.runs[id]++
}

func (e *effects) of(id string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[id]
}

func (e *effects) jobs() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runs)
}

// workWith runs a worker for kind "work" until the test ends.
func workWith(t *testing.T, handle func(ctx context.Context) error, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan cli.Code, 1)
	var log strings.Builder
	go func() {
		args := append([]string{"run", "--queues", "q", "--admin-addr", "off"}, args...)
		ended <- runWorker(ctx, args, &log, func(r *worker.Registry) error {
			kind := worker.Kind[[]byte]{Name: "work", Config: worker.KindConfig{MaxAttempts: 1}}
			worker.Handle(r, kind, func(ctx context.Context, _ []byte) error { return handle(ctx) })
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("worker's exit code %d\n%s", code, &log)
		}
	})
}

func count1(e *effects) func(context.Context) error {
	return func(ctx context.Context) error {
		e.add(worker.JobFrom(ctx).ID)
		return nil
	}
}

// A job that has completed meanwhile is not run again by a replay; by force it really is, once.
func TestReplayOfCompletedJobs(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*testing.T) place{"embedded": embeddedPlace, "postgres": postgresPlace} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replayCompleted(t, make(t))
		})
	}
}

func replayCompleted(t *testing.T, p place) {
	s := p.Set
	manyIn(t, s, 6)
	command := func(args ...string) result { return call(t, append(args, p.args...)...) }
	body := func(id string) []byte { return []byte(id + strings.Repeat(".", 4<<10)) }
	for _, id := range []string{"job0001", "job0003"} {
		complete(t, s, id, body(id))
	}
	out := ok(t, command("replay", "--all", "--dry-run"))
	if want := "would replay 4 jobs to queues q (4), for destinations shop (4); 2 completed meanwhile and left out\n"; out != want {
		t.Errorf("printed %q, want %q", out, want)
	}
	if out := ok(t, command("show", "job0001.0")); !strings.Contains(out, "a replay would leave it out: its key was completed") {
		t.Errorf("show:\n%s", out)
	}
	r := command("replay", "--all", "--yes")
	if out := ok(t, r); out != "replayed 4 of 6, 2 completed meanwhile and left out\n" || !strings.Contains(r.err, "job0003.0: its key was completed meanwhile") {
		t.Errorf("printed %s%s", out, r.err)
	}
	var did effects
	workWith(t, count1(&did), p.args...)
	eventually.True(t, "4 jobs have run", func() bool { return did.jobs() == 4 })
	if n := count(t, s, dlq.StateDead); n != 2 {
		t.Errorf("%d are dead, want the 2 that have completed", n)
	}

	if out := ok(t, command("replay", "--all", "--dry-run", "--force")); !strings.Contains(out, "2 of them have completed meanwhile and run again") {
		t.Errorf("printed %q", out)
	}
	if out := ok(t, command("replay", "--all", "--yes", "--force")); out != "replayed 2 of 2, 2 of them run again by force\n" {
		t.Errorf("printed %q", out)
	}
	eventually.True(t, "the forced jobs have run", func() bool { return did.jobs() == 6 })
	for _, id := range ids(6, "job") {
		if did.of(id) != 1 {
			t.Errorf("job %s ran %d times", id, did.of(id))
		}
	}
}

// The end of a forced run is seen by a canary too.
func TestForcedCanary(t *testing.T) {
	t.Parallel()
	path, s := many(t, 6)
	for _, id := range ids(6, "job") {
		complete(t, s, id, []byte(id+strings.Repeat(".", 4<<10)))
	}
	var did effects
	workWith(t, count1(&did), "--db", path)
	ok(t, call(t, "replay", "--all", "--yes", "--force", "--canary", "2", "--db", path))
	eventually.True(t, "all have run", func() bool { return did.jobs() == 6 })
}

// Beyond the retention of keys the dry run says that it cannot tell.
func TestReplayBeyondKeyRetention(t *testing.T) {
	t.Parallel()
	path, s := many(t, 2)
	old := letter(t, "old", "q", "work", []byte("old"), func(e *dlq.Entry) { e.LastFailedAt = time.Now().Add(-49 * time.Hour) })
	seed(t, s, old)
	out := ok(t, call(t, "replay", "--all", "--dry-run", "--db", path))
	if !strings.Contains(out, "would replay 3 jobs") || !strings.Contains(out, "nobody can tell whether 1 of them have completed meanwhile: they died more than idempotency.retention (48h0m0s) ago") {
		t.Errorf("printed %q", out)
	}
	if out := ok(t, call(t, "replay", "--all", "--dry-run", "--set", "idempotency.retention=3d", "--db", path)); strings.Contains(out, "nobody") {
		t.Errorf("with a longer retention: %q", out)
	}
	if out := ok(t, call(t, "replay", "--all", "--dry-run", "--set", "store=none", "--db", path)); !strings.Contains(out, "there is no claim store") {
		t.Errorf("without claims: %q", out)
	}
	if r := call(t, "replay", "--all", "--force", "--yes", "--set", "store=none", "--db", path); r.code != cli.Usage {
		t.Errorf("forced without claims: code %d %s", r.code, r.err)
	}
}

// show follows a job through its runs.
func TestShowOtherRuns(t *testing.T) {
	t.Parallel()
	path, s := many(t, 1)
	ok(t, call(t, "replay", "--all", "--yes", "--db", path))
	out := ok(t, call(t, "show", "job0000.0", "--db", path))
	if !strings.Contains(out, "run 1 was published and has not ended yet") || !strings.Contains(out, "closed by      replay-") {
		t.Errorf("after the replay:\n%s", out)
	}
	workWith(t, func(context.Context) error { return fmt.Errorf("still broken") }, "--db", path)
	eventually.True(t, "it died again", func() bool { return count(t, s, dlq.StateDead) == 1 })
	out = ok(t, call(t, "show", "job0000.0", "--db", path))
	if !strings.Contains(out, "run 1 died again: see job0000.1") || !strings.Contains(out, "job0000.1  dead since") {
		t.Errorf("after it died again:\n%s", out)
	}
	var shown struct {
		Runs []otherRun `json:"runs"`
		Next nextRun    `json:"next_run"`
	}
	if err := json.Unmarshal([]byte(ok(t, call(t, "show", "job0000.1", "--json", "--db", path))), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Runs) != 1 || shown.Runs[0].ID != "job0000.0" || shown.Runs[0].State != dlq.StateReplayed || shown.Next != (nextRun{Run: 2, Status: "would_replay"}) {
		t.Errorf("%+v", shown)
	}
	if got := strings.Join(listed(t, path, "--job", "job0000", "--state", "all"), " "); got != "job0000.1 job0000.0" {
		t.Errorf("--job lists %q", got)
	}
}
