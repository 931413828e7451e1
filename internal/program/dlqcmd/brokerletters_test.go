package dlqcmd

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/queue"
)

// brokerStack opens an embedded queue that keeps its dead letters as a broker without a store does.
func brokerStack(ctx context.Context, cfg *config.Config, mode backends.Mode) (*backends.Set, error) {
	s, err := backends.OpenSoon(ctx, cfg, mode)
	if err != nil {
		return nil, err
	}
	s.Letters = nil
	s.BrokerDLQ, err = brokerdlq.New(brokerdlq.Config{Broker: s.Broker, Lease: 2 * time.Second, Idle: 400 * time.Millisecond})
	return s, err
}

// onBroker is the program on such a queue.
func onBroker(streams cli.IO) *tool {
	t := newTool(&cli.Program{Name: standalone, IO: streams}, standalone)
	t.openBackends = brokerStack
	return t
}

// callBroker runs a command line on such a queue.
func callBroker(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	code := onBroker(cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}).run(t.Context(), args)
	return result{code, out.String(), errs.String()}
}

// inBroker puts dead letters into the broker's queues at a new path.
func inBroker(t *testing.T, entries ...dlq.Entry) (string, *backends.Set) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "q.db")
	s := open(t, path)
	letters, err := brokerdlq.New(brokerdlq.Config{Broker: s.Broker})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := s.Broker.CreateQueue(t.Context(), e.Queue); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(letters.Put(t.Context(), entries)...); err != nil {
		t.Fatal(err)
	}
	return path, s
}

func threeInBroker(t *testing.T) (string, *backends.Set) {
	t.Helper()
	return inBroker(t,
		letter(t, "a", "mail", "email.send", []byte(`{"to":"<ann>"}`), nil),
		letter(t, "b", "mail", "email.send", binary, func(e *dlq.Entry) { e.Error = "status 503 after 7 ms\x1b[2J\nwiped" }),
		letter(t, "c", "mail", "webhook.deliver", nil, func(e *dlq.Entry) { e.Cause, e.Error = dlq.CauseRejected, "cancelled" }),
	)
}

func TestLookingIntoTheBroker(t *testing.T) {
	t.Parallel()
	db, _ := threeInBroker(t)
	for range 2 { // looking changes nothing
		var page entryList
		if err := json.Unmarshal([]byte(ok(t, callBroker(t, "list", "--json", "--db", db))), &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) != 3 || page.Sample == nil || !page.Sample.Complete || page.Sample.Looked != 3 {
			t.Errorf("listed %+v", page)
		}
	}
	r := callBroker(t, "list", "--limit", "1", "--kind", "email.send", "--db", db)
	if out := ok(t, r); !strings.Contains(out, "email.send") || !strings.Contains(r.err, "a sample: the first ") {
		t.Errorf("printed %s%s", out, r.err)
	}
	out := ok(t, callBroker(t, "show", "b.0", "--db", db))
	for _, want := range []string{"status 503 after 7 ms\\x1b[2J\n", "trace", "payload, 256 bytes", "2, of which 1 are known"} {
		if !strings.Contains(out, want) {
			t.Errorf("show lacks %q:\n%s", want, out)
		}
	}
	if out := ok(t, callBroker(t, "show", "b.0", "--payload-only", "--db", db)); out != string(binary) {
		t.Errorf("the payload changed: %q", out)
	}
	if r := callBroker(t, "show", "nobody.0", "--db", db); r.code != cli.Failure || !strings.Contains(r.err, "not found") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	var groups groupList
	if err := json.Unmarshal([]byte(ok(t, callBroker(t, "groups", "--json", "--db", db))), &groups); err != nil {
		t.Fatal(err)
	}
	if len(groups.Groups) != 3 || groups.Groups[0].Count != 1 || !groups.Sample.Complete {
		t.Errorf("groups %+v", groups)
	}
}

// What a broker cannot do says where it can be done.
func TestBrokerNamesTheImport(t *testing.T) {
	t.Parallel()
	db, _ := threeInBroker(t)
	for _, args := range [][]string{
		{"list", "--state", "held"},
		{"list", "--after", "x"},
		{"replay", "--all", "--yes", "--canary", "2"},
		{"purge", "--state", "replayed", "--id", "a.0", "--yes"},
		{"import", "--all", "--yes"},
	} {
		r := callBroker(t, append(args, "--db", db)...)
		if r.code != cli.Usage || !strings.Contains(r.err, "import") || !strings.Contains(r.err, "--store FILE") {
			t.Errorf("%v: code %d: %s", args, r.code, r.err)
		}
	}
	if r := callBroker(t, "list", "--store", db+".none", "--db", db); r.code != cli.Usage || !strings.Contains(r.err, "import makes it") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	if r := callBroker(t, "replay", "--all", "--db", db); r.code != cli.Usage || !strings.Contains(r.err, "of about 3 dead letters in the broker? Nobody can be asked") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
}

func TestReplayFromTheBroker(t *testing.T) {
	t.Parallel()
	db, s := threeInBroker(t)
	out := ok(t, callBroker(t, "replay", "--kind", "email.send", "--dry-run", "--db", db))
	if out != "would replay 2 jobs to queues mail (2), for destinations shop (2)\n" {
		t.Errorf("printed %q", out)
	}
	if r := callBroker(t, "replay", "--all", "--yes", "--to", "nowhere", "--db", db); r.code != cli.Failure || !strings.Contains(r.err, "nowhere") {
		t.Errorf("missing target: code %d\n%s%s", r.code, r.out, r.err)
	}
	out = ok(t, callBroker(t, "replay", "--kind", "email.send", "--yes", "--db", db))
	if out != "replayed 2 of 2, 1 did not match\n" {
		t.Errorf("printed %q", out)
	}
	out = ok(t, callBroker(t, "replay", "--kind", "email.send", "--yes", "--json", "--db", db))
	if !strings.Contains(out, `"matched":0,"replayed":0,"failed":0,"refused":0,"left":0,"passed_over":1`) {
		t.Errorf("printed %s", out)
	}
	if got := drain(t, s, "mail"); len(got) != 2 || len(got[0].Headers) != 1 {
		t.Errorf("%d messages, want 2 with their envelopes", len(got))
	}
}

func TestPurgeInTheBroker(t *testing.T) {
	t.Parallel()
	db, _ := threeInBroker(t)
	if out := ok(t, callBroker(t, "purge", "--cause", "rejected", "--dry-run", "--db", db)); out != "would purge 1 entries\n" {
		t.Errorf("printed %q", out)
	}
	if out := ok(t, callBroker(t, "purge", "--cause", "rejected", "--yes", "--db", db)); out != "purged 1 entries\n" {
		t.Errorf("printed %q", out)
	}
	var page entryList
	if err := json.Unmarshal([]byte(ok(t, callBroker(t, "list", "--json", "--db", db))), &page); err != nil || len(page.Entries) != 2 {
		t.Errorf("%d left, %v; want 2", len(page.Entries), err)
	}
}

// Imported dead letters can do all that a store can, and are replayed to the broker that they came from.
func TestImportFromTheBroker(t *testing.T) {
	t.Parallel()
	db, s := threeInBroker(t)
	file := filepath.Join(t.TempDir(), "letters.db")
	if out := ok(t, callBroker(t, "import", "--all", "--dry-run", "--store", file, "--db", db)); out != "would import 3 entries\n" {
		t.Errorf("printed %q", out)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dry run made the file: %v", err)
	}
	if r := callBroker(t, "import", "--all", "--store", file, "--db", db); r.code != cli.Usage || !strings.Contains(r.err, "into the store?") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	if out := ok(t, callBroker(t, "import", "--kind", "email.send", "--yes", "--store", file, "--db", db)); out != "imported 2 entries, 1 did not match\n" {
		t.Errorf("printed %q", out)
	}
	ok(t, callBroker(t, "import", "--all", "--yes", "--store", file, "--db", db))
	out := ok(t, callBroker(t, "import", "--all", "--yes", "--json", "--store", file, "--db", db))
	if out != `{"dry_run":false,"imported":0,"passed_over":0}`+"\n" {
		t.Errorf("a second import printed %s", out)
	}
	if out := ok(t, callBroker(t, "replay", "--all", "--yes", "--store", file, "--db", db)); out != "replayed 3 of 3\n" {
		t.Errorf("printed %q", out)
	}
	if got := drain(t, s, "mail"); len(got) != 3 {
		t.Errorf("%d messages reached the broker, want 3", len(got))
	}
}

// With a store in use, import collects what the broker has moved away by itself.
func TestImportIntoTheConfiguredStore(t *testing.T) {
	t.Parallel()
	db, s := inBroker(t, letter(t, "a", "default", "work", []byte("x"), nil))
	if r := s.Broker.Publish(t.Context(), "default.dlq", []queue.Publication{{Message: queue.Message{Body: []byte("foreign")}}}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	ok(t, call(t, "import", "--all", "--yes", "--db", db))
	if n := count(t, s, dlq.StateDead); n != 2 {
		t.Errorf("%d dead letters in the store, want 2", n)
	}
}

// An export, of a broker or a store, can be imported: the same entries, byte for byte.
func TestImportOfAnExport(t *testing.T) {
	t.Parallel()
	db, _ := threeInBroker(t)
	export, file := filepath.Join(t.TempDir(), "out.jsonl"), filepath.Join(t.TempDir(), "letters.db")
	ok(t, callBroker(t, "export", "-o", export, "--db", db))
	for range 2 {
		if out := ok(t, callBroker(t, "import", "--all", "--from", export, "--store", file, "--db", db)); out != "imported 3 entries\n" {
			t.Errorf("printed %q", out)
		}
	}
	before, after := records(t, ok(t, callBroker(t, "export", "--db", db))), records(t, ok(t, callBroker(t, "export", "--store", file, "--db", db)))
	if diff := cmp.Diff(before, after); diff != "" || len(before) != 3 {
		t.Errorf("%d exported; the import changed them (-broker +store):\n%s", len(before), diff)
	}
}

// records reads an export, without what a store sets anew.
func records(t *testing.T, text string) map[string]record {
	t.Helper()
	found := map[string]record{}
	for line := range strings.Lines(text) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		r.StoredAt, r.ChangedAt = time.Time{}, time.Time{}
		found[r.ID] = r
	}
	return found
}

// manyInBroker puts n dead jobs of 4 KB into the broker.
func manyInBroker(t *testing.T, n int) (string, *backends.Set) {
	t.Helper()
	entries := make([]dlq.Entry, n)
	for i, id := range ids(n, "job") {
		entries[i] = letter(t, id, "q", "work", []byte(id+strings.Repeat(".", 4<<10)), nil)
	}
	return inBroker(t, entries...)
}

func ready(t *testing.T, s *backends.Set, name string) int {
	t.Helper()
	d, err := s.Broker.Depth(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return int(d.Ready.N)
}

// Field cases G4 (a) and (b): the tool is killed, or interrupted, in the middle of a replay from the broker.
func TestStoppedReplayFromTheBroker(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"kill": syscall.SIGKILL, "interrupt": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n, batch = 300, 15
			db, s := manyInBroker(t, n)
			cmd, errs := spawnAs(t, "broker", "replay", "--all", "--yes", "--rate", "150", "--db", db)
			eventually.True(t, "a third is replayed", func() bool { return ready(t, s, "q") >= n/3 })
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); sig == syscall.SIGINT && (code != int(cli.Interrupted) || !strings.Contains(errs.String(), "run the same command again")) {
				t.Errorf("exit code %d\n%s", code, errs)
			}
			// What the killed process had in hand comes back when its lease ends.
			eventually.True(t, "all are replayed", func() bool {
				ok(t, callBroker(t, "replay", "--all", "--yes", "--db", db))
				d, err := s.Broker.Depth(t.Context(), queue.DLQ("q"))
				return err == nil && d.Ready.N+d.InFlight.N == 0
			})
			found, doubled := published(t, s), 0
			for _, id := range ids(n, "job") {
				if found[id] == 0 {
					t.Errorf("job %s is lost", id)
				}
				doubled += found[id] - 1
			}
			if doubled > batch || sig == syscall.SIGINT && doubled > 0 {
				t.Errorf("%d jobs are doubled", doubled)
			}
		})
	}
}
