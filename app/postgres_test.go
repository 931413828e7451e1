package app_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/outbox"
	"github.com/caisson-go/caisson/worker"
)

// replayTool builds dlq-replay.
func replayTool(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "dlq-replay")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", tool, "../cmd/dlq-replay").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return tool
}

// The whole life of a keyed job with its store in PostgreSQL, by programs of their own, on the embedded queue and on RabbitMQ: it runs, dies, is
// looked at and replayed, runs, and is never run again. The password is seen nowhere.
func TestLifeOnPostgres(t *testing.T) {
	t.Parallel()
	tool := replayTool(t)
	for _, broker := range []string{"embedded", "rabbitmq"} {
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			db, dir, name := newDatabase(t), t.TempDir(), ""
			env := append(db.env, "CAISSON_BROKER="+broker, "CAISSON_EMBEDDED_PATH="+filepath.Join(dir, "q.db"), envKeyed+"=1")
			if broker == "rabbitmq" {
				name = rabbitQueue(t)
				env = append(env, "CAISSON_RABBITMQ_URLS="+testserver.AMQP(t), "CAISSON_QUEUES="+name, "CAISSON_DLQ_MIRROR=broker", "CAISSON_DLQ_SWEEP=1s")
			}
			command := func(want string, args ...string) string {
				t.Helper()
				out := ok(t, call(t, "", env, args...))
				silentOn(t, out)
				if !strings.Contains(out, want) {
					t.Errorf("%v: no %q in\n%s", args, want, out)
				}
				return out
			}
			inBroker := func(n int, what string) {
				if broker == "rabbitmq" { // where dlq.mirror is on
					eventually.True(t, what, func() bool { return depthOf(t, env, queue.DLQ(name)) == n })
				}
			}
			command("version", "migrate", "up")
			worker := spawn(t, dir, env)
			if broker == "rabbitmq" { // whose queue the worker makes
				eventually.True(t, "the worker works", func() bool { return strings.Contains(worker.log.String(), "worker starts") })
			}
			eventually.True(t, "enqueued", func() bool { return call(t, "", env, "enqueue", "quick", "--id", "first").code == 0 })
			worker.await("done first 1")
			command("bad", "enqueue", "pay", "--id", "bad", "--key", "k")
			letters := func(args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), tool, args...)
				cmd.Env = env
				var errs bytes.Buffer
				cmd.Stderr = &errs
				out, err := cmd.Output()
				silentOn(t, string(out), errs.String())
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, &errs)
				}
				return string(out)
			}
			eventually.True(t, "the job is dead", func() bool { return strings.Contains(letters("list"), "bad.0") })
			inBroker(1, "the dead letter is copied")
			if out := letters("show", "bad.0"); !strings.Contains(out, "card refused") {
				t.Errorf("show prints\n%s", out)
			}
			command("card refused", "explain", "bad")
			stop(t, worker)
			worker = spawn(t, dir, append(env, envObey+"=1"))
			letters("replay", "--all", "--yes")
			worker.await("paid bad 1")
			command("again", "enqueue", "pay", "--id", "again", "--key", "k") // a duplicate by its key
			command("last", "enqueue", "quick", "--id", "last")
			worker.await("done last 1")
			eventually.True(t, "the key is completed", func() bool { return db.completed(t, "pay", "k") })
			inBroker(0, "the copy is swept away")
			stop(t, worker)
			if got := strings.Join(worker.lines(), ", "); strings.Count(got, "paid") != 1 {
				t.Errorf("effects: %s", got)
			}
			command("***", "config", "print")
			command("***", "config", "print", "--json")
			silentOn(t, ok(t, callWith(t, new(record).setup, "", env, "config", "check")))
		})
	}
}

// completed asks the store.
func (d database) completed(t *testing.T, kind, key string) bool {
	t.Helper()
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: d.url, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	claims, err := postgres.New(pool, postgres.Config{Schema: d.schema})
	if err != nil {
		t.Fatal(err)
	}
	defer claims.Close()
	r, err := claims.Get(t.Context(), idempotency.Key{Scope: kind, Value: key})
	return err == nil && r.State == idempotency.StatusCompleted
}

// depthOf counts the messages of a queue that can be received; -1 if it is not there.
func depthOf(t *testing.T, env []string, name string) int {
	t.Helper()
	var list struct {
		Queues []struct {
			Name  string
			Ready int
		}
	}
	if r := call(t, "", env, "queues", "--json"); r.code != 0 || json.Unmarshal([]byte(r.out), &list) != nil {
		return -1
	}
	for _, q := range list.Queues {
		if q.Name == name {
			return q.Ready
		}
	}
	return -1
}

// stop ends a process in order. What it logged must not show the password.
func stop(t *testing.T, p *process) {
	t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.log)
	}
	silentOn(t, p.log.String())
}

// rabbitQueue returns the name of a queue that is deleted in the end.
func rabbitQueue(t *testing.T) string {
	t.Helper()
	name, at := "test-app-"+strings.ToLower(rand.Text()[:10]), testserver.AMQP(t)
	t.Cleanup(func() {
		conn, err := amqp.Dial(at)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		ch, err := conn.Channel()
		if err != nil {
			t.Error(err)
			return
		}
		for _, full := range []string{"cs1." + name, "cs1." + name + ".dlq"} {
			if _, err := ch.QueueDelete(full, false, false, false); err != nil {
				t.Error(err)
			}
		}
	})
	return name
}

// A worker whose database is away at its start waits and says in readiness and log what for; it works when the database comes, is not ready while
// it is away again, and goes on by itself.
func TestDatabaseComesAndGoes(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("postgres", password)
	dir, admin := t.TempDir(), freeAddr(t)
	env := []string{"CAISSON_POSTGRES_URL=" + at.String(), envKeyed + "=1", envObey + "=1"}
	onFile := []string{"--db", filepath.Join(dir, "q.db")}
	ok(t, call(t, "", env, "migrate", "up"))
	server.Stop(t)
	worker := spawn(t, dir, env, "--admin-addr", admin)
	unready := func(want string) {
		t.Helper()
		eventually.True(t, "readiness says "+want, func() bool {
			code, body := probe(t, "http://"+admin+"/readyz")
			silentOn(t, body)
			return code == http.StatusServiceUnavailable && strings.Contains(body, want)
		})
	}
	unready("connecting to postgres at " + server.Addr() + "/postgres")
	eventually.True(t, "the log tells", func() bool { return strings.Contains(worker.log.String(), "waiting for it") })
	server.Start(t)
	ready := func() {
		t.Helper()
		eventually.True(t, "ready", func() bool { code, _ := probe(t, "http://"+admin+"/readyz"); return code == http.StatusOK })
	}
	ready()
	ok(t, call(t, "", env, append([]string{"enqueue", "pay", "--id", "one"}, onFile...)...))
	worker.await("paid one 1")
	eventually.True(t, "connections are measured", func() bool {
		_, body := probe(t, "http://"+admin+"/metrics")
		return strings.Contains(body, `caisson_store_connections{state="idle"}`) && strings.Contains(body, "caisson_store_connections_max 20")
	})
	server.Kill(t)
	unready("postgres at " + server.Addr())
	server.Start(t)
	ready()
	ok(t, call(t, "", env, append([]string{"enqueue", "pay", "--id", "two"}, onFile...)...))
	worker.await("paid two 1")
	stop(t, worker)
}

// freeAddr returns an address where nothing listens at present.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func probe(t *testing.T, url string) (code int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(data)
}

// The relay alone, and in a worker, publishes what transactions left; without a database there is none.
func TestRelayCommands(t *testing.T) {
	t.Parallel()
	if r := call(t, "", nil, "relay"); r.code != 2 || !strings.Contains(r.err, "postgres.url") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	db := newDatabase(t)
	ok(t, call(t, "", db.env, "migrate", "up"))
	file := filepath.Join(t.TempDir(), "q.db")
	insert := func(id string) { db.enqueue(t, worker.NewJob{Kind: "note", ID: id, Payload: []byte("p")}) }
	ok(t, call(t, "", nil, "queues", "create", "default", "--db", file))
	settings := []string{"--db", file, "--admin-addr", "off"}
	insert("alone")
	relay := startCommand(t, db.env, nil, "relay", settings...)
	eventually.True(t, "the job is in its queue", func() bool {
		r := call(t, "", nil, "queues", "--db", file)
		return r.code == 0 && strings.Contains(r.out, "default  1")
	})
	worked := new(record)
	both := startWith(t, db.env, worked.setup, append(settings, "--set", "outbox.relay=true")...)
	insert("beside")
	eventually.True(t, "both jobs ran", func() bool { return len(worked.sorted()) == 2 })
	for _, r := range []*running{relay, both} {
		if code := r.end(); code != 0 {
			t.Errorf("exit code %d\n%s", code, r.log)
		}
		silentOn(t, r.log.String())
	}
}

// enqueue enqueues a job in a transaction.
func (d database) enqueue(t *testing.T, job worker.NewJob) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	box, err := outbox.New(outbox.Config{Schema: d.schema})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		client, err := worker.NewClient(worker.ClientConfig{Broker: box.In(tx)})
		if err != nil {
			return err
		}
		_, err = client.Enqueue(t.Context(), job)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
