package app_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/worker"
)

// explained is what the tests read of explain's JSON.
type explained struct {
	Workers *int
	Event   struct {
		ID         string
		Deliveries int
	}
	Jobs []struct {
		Job, Kind, State, Why string
		Run                   int
		MaxAttempts           int       `json:"max_attempts"`
		NextTry               time.Time `json:"next_try"`
		Claim                 struct{ State, Owner, Job string }
		Runs                  []struct {
			Run, Attempts int
			Closed        bool
			Failed        []struct{ Error string }
		}
		Messages    []struct{ State, Queue string }
		Breaker     struct{ Refusing, Workers int }
		DeadLetters []struct{ ID, State, Cause string } `json:"dead_letters"`
	}
	Notes []string
}

// cast is a program whose jobs end up in every state, and the file that it works on.
type cast struct {
	t    *testing.T
	db   string
	env  []string
	open chan struct{} // lets the kind "block" end
}

func newCast(t *testing.T) *cast {
	t.Helper()
	return &cast{t: t, db: filepath.Join(t.TempDir(), "q.db"), open: make(chan struct{})}
}

// onEachStore runs a test with everything in one file, and with claims, dead letters and the status store in PostgreSQL.
func onEachStore(t *testing.T, test func(t *testing.T, c *cast)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newCast(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		_, schema := testserver.Schema(t)
		c := newCast(t)
		c.env = []string{"CAISSON_POSTGRES_URL=" + testserver.Postgres(t), "CAISSON_POSTGRES_SCHEMA=" + schema}
		test(t, c)
	})
}

func (c *cast) call(args ...string) result {
	c.t.Helper()
	return call(c.t, "", c.env, append(args, "--db", c.db)...)
}

func (c *cast) setup(r *worker.Registry) error {
	errDown := errors.New("connection refused\nat line 1")
	block := func(ctx context.Context, _ []byte) error {
		select {
		case <-c.open:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	worker.Handle(r, worker.Kind[[]byte]{Name: "quick"}, func(context.Context, []byte) error { return nil })
	worker.Handle(r, worker.Kind[[]byte]{Name: "block"}, block)
	worker.Handle(r, worker.Kind[[]byte]{Name: "unkeyed", Config: worker.KindConfig{Keyed: new(false)}}, block)
	worker.Handle(r, worker.Kind[[]byte]{Name: "narrow", Config: worker.KindConfig{Bulkhead: 1, Waiting: new(1)}}, block)
	worker.Handle(r, worker.Kind[[]byte]{Name: "fail"}, func(context.Context, []byte) error { return errDown })
	worker.Handle(r, worker.Kind[[]byte]{Name: "die", Config: worker.KindConfig{MaxAttempts: 1}}, func(context.Context, []byte) error { return errDown })
	worker.Handle(r, worker.Kind[[]byte]{Name: "call", Config: worker.KindConfig{Destination: "https://Shop.example.com/hooks?token=secret"}},
		func(context.Context, []byte) error { return errDown })
	return nil
}

// run starts a worker. Breakers open at the first failure, for an hour.
func (c *cast) run(args ...string) *running {
	c.t.Helper()
	return startWith(c.t, c.env, c.setup, append([]string{
		"--db", c.db, "--admin-addr", "off", "--stop-grace", "0s",
		"--set", "destinations.default.breaker.min_calls=1", "--set", "destinations.default.breaker.open=1h",
	}, args...)...)
}

func (c *cast) enqueue(kind, id string, args ...string) {
	c.t.Helper()
	ok(c.t, c.call(append([]string{"enqueue", kind, "payload", "--id", id}, args...)...))
}

func (c *cast) explain(text string, args ...string) explained {
	c.t.Helper()
	var e explained
	out := ok(c.t, c.call(append([]string{"explain", text, "--json"}, args...)...))
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	return e
}

// becomes waits until the one job that text names is in a state, for a reason with all of the parts.
func (c *cast) becomes(text, state string, parts ...string) explained {
	c.t.Helper()
	var e explained
	last := ""
	deadline := time.Now().Add(2 * time.Minute)
	for {
		r := c.call("explain", text, "--json")
		if r.code == 0 {
			e = explained{}
			if err := json.Unmarshal([]byte(r.out), &e); err != nil {
				c.t.Fatalf("%v\n%s", err, r.out)
			}
			j := e.Jobs[0]
			last = j.State + ": " + j.Why
			missing := slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(j.Why, p) })
			if len(e.Jobs) == 1 && j.State == state && !missing {
				return e
			}
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("job %s is not %s for %q\nbut %s\n%s", text, state, parts, last, r.err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stack opens what the program works on.
func (c *cast) stack() *backends.Set {
	c.t.Helper()
	cfg, _, err := config.Load(config.Sources{Env: c.env, Flags: map[string]string{"embedded.path": c.db}})
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := backends.OpenSoon(c.t.Context(), cfg, backends.Existing)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestExplainWithoutAWorker(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	if r := call(t, "", nil, "explain", "x", "--db", c.db); r.code != 1 || !strings.Contains(r.err, c.db) {
		t.Errorf("without a file: exit code %d, %s", r.code, r.err)
	}
	c.enqueue("quick", "one")
	c.enqueue("quick", "two", "--key", "shared")
	c.enqueue("fail", "three", "--key", "shared")
	c.enqueue("quick", "later", "--delay", "1h")
	if r := call(t, "", nil, "explain", "x", "--db", c.db); r.code != 1 || r.out != "" || !strings.Contains(r.err, `nothing is known of a job with the id or key "x"`) {
		t.Errorf("unknown: exit code %d, %s%s", r.code, r.out, r.err)
	}
	c.becomes("one", "ready", "is next in queue default, and no worker is live")
	c.becomes("two", "ready", "behind 1 other")
	e := c.becomes("later", "scheduled", "is scheduled for", "in ")
	if e.Workers == nil || *e.Workers != 0 || len(e.Jobs[0].Messages) != 1 || e.Jobs[0].Messages[0].State != "delayed" {
		t.Errorf("later: %+v", e)
	}
	if e := c.explain("shared"); len(e.Jobs) != 2 {
		t.Errorf("two jobs share a key, %d are told", len(e.Jobs))
	}
	if e := c.explain("shared", "--kind", "fail"); len(e.Jobs) != 1 || e.Jobs[0].Job != "three" {
		t.Errorf("--kind chose %+v", e.Jobs)
	}
	if r := call(t, "", nil, "explain", "one", "--kind", "fail", "--db", c.db); r.code != 1 || !strings.Contains(r.err, `of kind "fail"`) {
		t.Errorf("no job of that kind: exit code %d, %s", r.code, r.err)
	}
	text := ok(t, call(t, "", nil, "explain", "shared", "--db", c.db))
	if !strings.HasPrefix(text, "job two waits for its turn in queue default behind 1 other") || !strings.Contains(text, "2 jobs match shared") {
		t.Errorf("several matches print\n%s", text)
	}
	text = ok(t, call(t, "", nil, "explain", "one", "--db", c.db))
	for _, want := range []string{"job one is next in queue default, and no worker is live.\n", "kind         quick\n", "message      1 in queue default: ready, ahead of it 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("text lacks %q\n%s", want, text)
		}
	}
}

func TestExplainWhatRuns(t *testing.T) {
	t.Parallel()
	onEachStore(t, explainWhatRuns)
}

func explainWhatRuns(t *testing.T, c *cast) {
	c.enqueue("block", "first", "--key", "k")
	w := c.run()
	e := c.becomes("first", "running", "attempt 1 of 4", "whose claim lasts")
	if j := e.Jobs[0]; j.Claim.State != "held" || j.Claim.Owner == "" || j.MaxAttempts != 4 || *e.Workers != 1 {
		t.Errorf("running: %+v", e)
	}
	c.enqueue("block", "second", "--key", "k")
	c.becomes("second", "key_busy", "job first is running")
	c.enqueue("unkeyed", "plain")
	c.becomes("plain", "running", "attempt 1 of 4", "a worker has its message")
	c.enqueue("narrow", "seated")
	c.becomes("seated", "running")
	c.enqueue("narrow", "standing")
	c.becomes("standing", "pool_full", "1 of the 1 places of narrow are taken")
	c.enqueue("quick", "done", "--key", "paid")
	c.becomes("paid", "completed", "it was completed, and that is remembered until")
	c.enqueue("quick", "again", "--key", "paid")
	ok(t, c.call("enqueue", "quick", "other payload", "--id", "other", "--key", "paid"))
	c.becomes("other", "dead", "idempotency_mismatch")
	eventually.True(t, "the duplicate is acked", func() bool {
		return depth(t, c.db, "default") == [3]int{0, 1, 4} || depth(t, c.db, "default") == [3]int{0, 0, 5}
	})
	close(c.open)
	c.becomes("first", "completed")
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, w.log)
	}
	if e := c.explain("first"); *e.Workers != 0 {
		t.Errorf("after a clean stop %d workers are live", *e.Workers)
	}
}

func TestExplainFailures(t *testing.T) {
	t.Parallel()
	onEachStore(t, explainFailures)
}

func explainFailures(t *testing.T, c *cast) {
	w := c.run("--set", "hold.after=0s", "--set", "hold.backlog=1", "--set", "kinds.fail.backoff=constant(1h)")
	c.enqueue("fail", "tried")
	e := c.becomes("tried", "between_attempts", "waits for attempt 2 of 4", "since attempt 1 failed: connection refused")
	if j := e.Jobs[0]; len(j.Runs) != 1 || len(j.Runs[0].Failed) != 1 || time.Until(j.NextTry) < 40*time.Minute {
		t.Errorf("between attempts: %+v", j)
	}
	if text := ok(t, c.call("explain", "tried")); strings.Contains(text, "line 1") {
		t.Errorf("the second line of an error is printed\n%s", text)
	}

	c.enqueue("call", "opens")
	c.becomes("opens", "between_attempts", "its destination shop.example.com refuses jobs as well: its breaker is open at 1 of 1 worker, since")
	c.enqueue("call", "waits")
	e = c.becomes("waits", "destination_open", "waits for its destination shop.example.com: its breaker is open at 1 of 1 worker", "next probe in ", "it is looked at again in ")
	if b := e.Jobs[0].Breaker; b.Refusing != 1 || b.Workers != 1 {
		t.Errorf("breaker: %+v", b)
	}
	c.enqueue("call", "held")
	c.becomes("held", "held", "with 0 others, until its destination shop.example.com recovers: its breaker is open")
	if text := ok(t, c.call("explain", "held")) + ok(t, c.call("explain", "waits", "--json")); strings.Contains(text, "secret") {
		t.Errorf("a secret is shown\n%s", text)
	}

	c.enqueue("die", "dead", "--key", "dk")
	e = c.becomes("dk", "dead", "is a dead letter since", "after 1 attempt (exhausted): connection refused")
	if d := e.Jobs[0].DeadLetters; len(d) != 1 || d[0].ID != "dead.0" {
		t.Errorf("dead letters: %+v", d)
	}
	c.becomes("dead.0", "dead") // by the dead letter's id
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, w.log)
	}
	c.becomes("held", "held", "no worker is live that would release it")
	c.afterDeath()
}

// afterDeath follows a dead letter through replay, a second death, purge and expiry.
func (c *cast) afterDeath() {
	c.t.Helper()
	t := c.t
	s := c.stack()
	letters := s.Letters
	const id = "replay-of-ann"
	if _, err := letters.(audit.Log).BeginAudit(t.Context(), audit.Record{ID: id, Action: "replay", Actor: "ann@desk"}); err != nil {
		t.Fatal(err)
	}
	replay, err := replay.New(replay.Config{ID: id, Store: letters, Broker: s.Broker, Filter: dlq.Filter{IDs: []string{"dead.0"}}})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := replay.Run(t.Context()); err != nil || report.Replayed != 1 {
		t.Fatalf("replay: %+v, %v", report, err)
	}
	e := c.becomes("dead", "ready", "in queue default")
	if j := e.Jobs[0]; j.Run != 1 || len(j.DeadLetters) != 1 || j.DeadLetters[0].State != "replayed" || !j.Runs[0].Closed {
		t.Errorf("replayed: %+v", j)
	}
	if text := ok(t, c.call("explain", "dead")); !strings.Contains(text, "dead.0 is replayed since ") || !strings.Contains(text, ", by replay-of-ann of ann@desk: ") {
		t.Errorf("who replayed it is not told\n%s", text)
	}
	w := c.run()
	c.becomes("dead", "dead")
	eventually.True(t, "the replay dies as well", func() bool { return len(c.explain("dead").Jobs[0].DeadLetters) == 2 })
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, w.log)
	}
	if n, err := letters.Purge(t.Context(), dlq.Filter{IDs: []string{"dead.1"}}); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	c.becomes("dead", "purged", "died and was purged")
	time.Sleep(2 * time.Millisecond) // older than a millisecond
	if n, err := letters.Expire(t.Context(), time.Millisecond, 100); n != 2 || err != nil {
		t.Fatalf("expired %d, %v", n, err)
	}
	c.becomes("dead", "closed", "was given up after 1 attempt; its dead letter is not in the store any more")

	// A job that is not finished and whose message somebody has removed.
	c.becomes("tried", "between_attempts")
	c.remove("tried")
	c.becomes("tried", "gone", "its message is in no queue")
}

// remove deletes the message of a job behind everybody's back.
func (c *cast) remove(id string) {
	c.t.Helper()
	file, err := sqlitefile.Open(c.t.Context(), sqlitefile.Config{Path: c.db})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	err = file.Write(c.t.Context(), true, func(tx *sqlitefile.Tx) error {
		res, err := tx.Exec(`DELETE FROM messages WHERE instr(headers, ?) > 0`, []byte(`"id":"`+id+`"`))
		if err == nil && res.Changed != 1 {
			c.t.Errorf("%d messages of %s", res.Changed, id)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// TestExplainAKilledWorker runs programs of their own: one that is killed in the middle of a job, and explain beside it.
func TestExplainAKilledWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, "q.db")
	program := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), exe, append(args, "--db", db)...)
		cmd.Env = []string{envProgram + "=1", envEffects + "=" + filepath.Join(dir, "effects")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	program("enqueue", "quick", "--id", "q")
	program("enqueue", "hang", "--id", "h")
	p := spawn(t, dir, nil)
	p.await("begun h 1")
	eventually.True(t, "explain sees both", func() bool {
		return strings.Contains(program("explain", "q"), "job q is done: it was completed") && strings.Contains(program("explain", "h"), "job h is running: attempt 1 of 4, at ")
	})
	p.signal(os.Kill)
	p.exit()
	eventually.True(t, "explain sees that its worker is lost", func() bool {
		text := program("explain", "h")
		return strings.Contains(text, "job h is next in queue default, since ") && strings.Contains(text, " died or lost it: its claim ran out")
	})
}

// TestExplainBesideABrokerThatCannotTell: what SQS cannot say is said, and the ledger and the dead letters answer.
func TestExplainBesideABrokerThatCannotTell(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	name := "explain-" + strings.ToLower(rand.Text()[:10])
	endpoint := testserver.SQS(t)
	settings := []string{
		"CAISSON_BROKER=sqs", "CAISSON_SQS_ENDPOINT=" + endpoint, "CAISSON_SQS_REGION=us-east-1", "CAISSON_QUEUES=" + name, "CAISSON_STORE=sqlite",
		"CAISSON_SQLITE_SINGLE_HOST=true", "CAISSON_SQLITE_PATH=" + c.db, "CAISSON_ADMIN_ADDR=off",
	}
	t.Cleanup(func() { deleteQueues(t, endpoint, name, name+"-dlq") })
	w := startWith(t, settings, c.setup, "--stop-grace", "0s", "--set", "kinds.fail.backoff=constant(1h)")
	enqueue := func(kind, id string) {
		t.Helper()
		ok(t, call(t, "", settings, "enqueue", kind, "payload", "--id", id))
	}
	says := func(id, what string) {
		t.Helper()
		last := result{}
		eventually.True(t, id+": "+what, func() bool {
			last = call(t, "", settings, "explain", id)
			return last.code == 0 && strings.HasPrefix(last.out, "job "+id+" "+what) && strings.Contains(last.out, "note: sqs cannot be asked where one message is")
		})
	}
	eventually.True(t, "the worker runs", func() bool { return strings.Contains(w.log.String(), "worker starts") })
	enqueue("fail", "tried")
	says("tried", "waits for attempt 2 of 4")
	enqueue("die", "dead")
	says("dead", "is a dead letter")
	enqueue("block", "runs")
	says("runs", "is running: attempt 1 of 4")
	if r := call(t, "", settings, "explain", "nothing"); r.code != 1 || !strings.Contains(r.err, "sqs cannot be asked") {
		t.Errorf("unknown: exit code %d, %s", r.code, r.err)
	}
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, w.log)
	}
	says("runs", "waits for attempt 1 in the broker, which cannot tell where")
}

func deleteQueues(t *testing.T, url string, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	client := awssqs.New(awssqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(url), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	for _, name := range names {
		found, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: aws.String(name)})
		if err == nil {
			_, err = client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: found.QueueUrl})
		}
		if err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	}
}
