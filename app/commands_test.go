package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/worker"
)

// record collects the payloads that a kind "note" was given.
type record struct {
	mu   sync.Mutex
	seen []string
}

func (r *record) setup(reg *worker.Registry) error {
	worker.Handle(reg, worker.Kind[[]byte]{Name: "note"}, r.add)
	return nil
}

// add notes what a job came with.
func (r *record) add(ctx context.Context, payload []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	job := worker.JobFrom(ctx)
	r.seen = append(r.seen, fmt.Sprintf("%s %q key=%s dest=%s trace=%s", job.ID, payload, job.Key, job.Destination, job.Headers["traceparent"]))
	return nil
}

func (r *record) sorted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.seen))
}

func TestEnqueueRunDelivered(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "q.db")
	id := ok(t, call(t, "", nil, "enqueue", "note", `{"a":"<&>"}`, "--db", db, "--id", "one", "--key", "k1", "--destination", "shop",
		"--header", "traceparent=00-x"))
	if id != "one\n" {
		t.Errorf("enqueue printed %q", id)
	}
	made := strings.TrimSpace(ok(t, call(t, "\x00\xff\r\n", nil, "enqueue", "note", "-", "--db", db)))
	if len(made) != 36 {
		t.Errorf("made id %q is no UUID", made)
	}
	ok(t, call(t, "", nil, "enqueue", "note", "later", "--db", db, "--delay", "1h", "--id", "later"))
	if got := depth(t, db, "default"); got != [3]int{2, 1, 0} {
		t.Errorf("depth before the run: %v", got)
	}

	var seen record
	program := start(t, seen.setup, "--db", db, "--admin-addr", "off")
	eventually.True(t, "both jobs ran", func() bool { return len(seen.sorted()) == 2 && depth(t, db, "default") == [3]int{0, 1, 0} })
	if code := program.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, program.log)
	}
	want := []string{
		fmt.Sprintf("%s %q key=%s dest= trace=", made, "\x00\xff\r\n", made),
		`one "{\"a\":\"<&>\"}" key=k1 dest=shop trace=00-x`,
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, seen.sorted()); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "q.db")
	out := ok(t, call(t, "{\"n\":1}\r\n\n{\"n\":2}", nil, "enqueue", "note", "-", "--lines", "--id", "x", "--json", "--db", db))
	want := `{"line":1,"id":"x-1","queue":"default"}
{"line":3,"id":"x-3","queue":"default"}
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("--lines --json (-want +got):\n%s", diff)
	}
	out = ok(t, call(t, "", nil, "enqueue", "note", "p", "--count", "3", "--id", "c", "--queue", "other", "--db", db))
	if out != "c-1\nc-2\nc-3\n" {
		t.Errorf("--count printed %q", out)
	}
	// A line above the broker's limit of 16 MiB costs only itself.
	r := call(t, "a\n"+strings.Repeat("x", 17<<20)+"\nb\n", nil, "enqueue", "note", "-", "--lines", "--id", "y", "--db", db)
	if r.code != 4 || r.out != "y-1\ny-3\n" || !strings.Contains(r.err, "2: enqueue") || !strings.Contains(r.err, "1 of 3 jobs were not accepted") {
		t.Errorf("one line too large: code %d, stdout %q, stderr %.300q", r.code, r.out, r.err)
	}
	if r := call(t, strings.Repeat("x", 17<<20), nil, "enqueue", "note", "-", "--db", db); r.code != 1 || !strings.Contains(r.err, "too large") && !strings.Contains(r.err, "exceeds") {
		t.Errorf("one job too large: code %d, stderr %.300q", r.code, r.err)
	}
	if got := depth(t, db, "default"); got != [3]int{4, 0, 0} {
		t.Errorf("depth %v, want 4 ready", got)
	}
	if got := depth(t, db, "other"); got != [3]int{3, 0, 0} {
		t.Errorf("depth of other %v, want 3 ready", got)
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "q.db")
	if r := call(t, "", nil, "queues", "--db", db); r.code != 1 || !strings.Contains(r.err, db) {
		t.Errorf("queues of a missing file: code %d, %s", r.code, r.err)
	}
	if out := ok(t, call(t, "", nil, "queues", "create", "a", "b", "--db", db, "--json")); out != `{"created":["a","b"]}`+"\n" {
		t.Errorf("create printed %q", out)
	}
	ok(t, call(t, "", nil, "queues", "create", "a", "--db", db))
	want := "QUEUE  READY  DELAYED  IN FLIGHT\na      0      0        0\nb      0      0        0\n"
	if diff := cmp.Diff(want, ok(t, call(t, "", nil, "queues", "list", "--db", db))); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	wantJSON := `{"queues":[{"name":"a","ready":0,"delayed":0,"in_flight":0},{"name":"b","ready":0,"delayed":0,"in_flight":0}]}` + "\n"
	if diff := cmp.Diff(wantJSON, ok(t, call(t, "", nil, "queues", "--db", db, "--json"))); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestRefusedCommandLines(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "q.db")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no command":           {nil, "a command is missing"},
		"unknown command":      {[]string{"enqeue"}, `did you mean enqueue?`},
		"unknown below":        {[]string{"config", "chek"}, `did you mean check?`},
		"unknown queue verb":   {[]string{"queues", "creat"}, `did you mean create?`},
		"unknown flag":         {[]string{"run", "--concurency", "3"}, "did you mean --concurrency?"},
		"too many arguments":   {[]string{"run", "now"}, "usage: worker run"},
		"no kind":              {[]string{"enqueue"}, "accepts between 1 and 2 arg(s)"},
		"delay without unit":   {[]string{"enqueue", "k", "--delay", "30"}, "--delay: duration \"30\" has no unit"},
		"negative delay":       {[]string{"enqueue", "k", "--delay", "-30s"}, "--delay: must not be negative"},
		"delay and at":         {[]string{"enqueue", "k", "--delay", "3s", "--at", "2031-01-01T00:00:00Z"}, "exclude each other"},
		"bad time":             {[]string{"enqueue", "k", "--at", "tomorrow"}, `--at "tomorrow": write a time like`},
		"bad deadline":         {[]string{"enqueue", "k", "--deadline", "soon"}, `--deadline: "soon": write a duration like 2h, or a time like`},
		"bad header":           {[]string{"enqueue", "k", "--header", "x"}, `--header "x": write name=value`},
		"lines and count":      {[]string{"enqueue", "k", "--lines", "--count", "2"}, "exclude each other"},
		"no such payload":      {[]string{"enqueue", "k", "@/no/such/file"}, "/no/such/file"},
		"count of none":        {[]string{"enqueue", "k", "--count", "0"}, "--count: must be at least 1"},
		"no such config":       {[]string{"queues", "--config", "/no/such/file.yaml"}, "/no/such/file.yaml"},
		"set without value":    {[]string{"queues", "--set", "lease"}, "write key=value"},
		"set without key":      {[]string{"queues", "--set", "=hunter2"}, "--set: write key=value"},
		"set of a bare secret": {[]string{"queues", "--set", "hunter2"}, "--set: write key=value"},
		"secret set twice":     {[]string{"queues", "--set", "admin.password=hunter2", "--set", "admin.password=hunter2"}, "--set admin.password: give each key once"},
		"set of unknown key":   {[]string{"queues", "--set", "leese=1m"}, "did you mean lease?"},
		"set twice":            {[]string{"queues", "--set", "embedded.path=x"}, "both set embedded.path"},
		"kind with a space":    {[]string{"enqueue", "bad kind"}, `KIND: must be 1 to 200 printable ASCII characters without spaces: "bad kind"`},
		"id with a line end":   {[]string{"enqueue", "k", "--id", "a\nb"}, `--id: must be 1 to 200 printable ASCII characters: "a\nb"`},
		"negative version":     {[]string{"enqueue", "k", "--payload-version", "-1"}, "--payload-version: "},
		"queue with a space":   {[]string{"enqueue", "k", "--queue", "bad queue"}, `"bad queue" is no queue name`},
		"no queue":             {[]string{"enqueue", "k", "--queue", ""}, `"" is no queue name`},
		"queue with a slash":   {[]string{"queues", "create", "fine", "a/b"}, `"a/b" is no queue name`},
		"nothing to run":       {[]string{"run"}, "there is nothing to run"},
		"nothing to run check": {[]string{"config", "check"}, "there is nothing to run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := tt.args
			if len(args) > 0 {
				args = append(slices.Clone(args), "--db", db)
			}
			r := call(t, "", nil, args...)
			if r.code != 2 || !strings.Contains(r.err, tt.want) || r.out != "" || strings.Contains(r.err, "hunter2") {
				t.Errorf("exit code %d, stdout %q, stderr:\n%s\nwant code 2 and %q", r.code, r.out, r.err, tt.want)
			}
			if len(args) == 0 {
				return
			}
			r = call(t, "", nil, append(args, "--json")...)
			var failure struct {
				Error    string
				ExitCode int `json:"exit_code"`
			}
			if r.code != 2 || json.Unmarshal([]byte(r.err), &failure) != nil || failure.ExitCode != 2 || !strings.Contains(failure.Error, tt.want) {
				t.Errorf("--json: code %d, stderr is no JSON: %s", r.code, r.err)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"config", "enqueue", "queues", "run", "version", "--config", "CAISSON_CONFIG", "--set", "--json", "Exit codes:", "130"}},
		{[]string{"run"}, []string{"stop.grace", "stop.hard", "exit code is 3", "code 130", "--queues", "--concurrency", "/readyz"}},
		{[]string{"enqueue"}, []string{"@FILE", "--lines", "--count", "--delay", "--at", "--deadline", "--header", "--destination", "exit 4"}},
		{[]string{"config", "check"}, []string{"Exits 2"}},
	} {
		out := ok(t, call(t, "", nil, append(tt.args, "--help")...))
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("help of %v does not mention %q:\n%s", tt.args, want, out)
			}
		}
	}
}

// Ctrl-C reaches a command that waits for its standard input.
func TestInterruptedWhileReading(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "q.db")
	for _, args := range [][]string{{"enqueue", "note", "-"}, {"enqueue", "note", "-", "--lines"}} {
		silent, hold := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- app.Run(ctx, append([]string{"worker"}, append(args, "--db", db)...), app.IO{In: silent, Out: io.Discard, Err: io.Discard}, nil)
		}()
		if _, err := hold.Write([]byte("{}")); err != nil { // taken: the command reads
			t.Fatal(err)
		}
		cancel()
		if code := <-ended; code != 130 {
			t.Errorf("%v: exit code %d, want 130", args, code)
		}
		if err := hold.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var b map[string]any
	if err := json.Unmarshal([]byte(ok(t, call(t, "", nil, "version", "--json"))), &b); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"program", "version", "go", "platform"} {
		if b[key] == nil {
			t.Errorf("version has no %q: %v", key, b)
		}
	}
}

// A job that names no queue goes where somebody works.
func TestEnqueueWithoutAQueue(t *testing.T) {
	t.Parallel()
	for queues, want := range map[string]string{"mail": "mail", "mail,default": "default", "b,a": "b"} {
		path := filepath.Join(t.TempDir(), "q.db")
		var out strings.Builder
		code := app.Run(t.Context(), []string{"worker", "enqueue", "k", "--db", path, "--set", "queues=" + queues, "--json"}, app.IO{Out: &out, Err: &out}, nil)
		if code != 0 || !strings.Contains(out.String(), `"queue":"`+want+`"`) {
			t.Errorf("with queues %s: exit %d, %s; want the queue %s", queues, code, out.String(), want)
		}
	}
}
