package outbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/queue"
)

// TestInvalidJobsWriteNothing: a bad job is named before any is written, and the transaction goes on.
func TestInvalidJobsWriteNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgdb.Config{})
	r.box = r.newBox(Config{Capabilities: func(name string) queue.Capabilities { return queue.Capabilities{MaxBody: 100} }})
	long := strings.Repeat("x", 1001)
	keyed := text("q", "")
	keyed.OrderingKey = long
	grouped := text("q", "")
	grouped.Group = long
	far := text("q", "")
	far.Delay = 101 * 365 * 24 * time.Hour
	for want, bad := range map[string]Job{
		"queue is empty":                  text("", "x"),
		"queue \"a\\x00\"":                text("a\x00", "x"),
		"queue \"\\xff\"":                 text("\xff", "x"),
		"ordering key of 1001 bytes":      keyed,
		"group of 1001 bytes":             grouped,
		"delay 884760h0m0s":               far,
		"exceeds the broker's limit of 1": text("q", long),
	} {
		r.in(func(tx pgx.Tx) {
			_, err := r.box.Enqueue(t.Context(), tx, text("q", "good"), bad)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "job 1") || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got %v", want, err)
			}
			if strings.Contains(want, "limit") && !errors.Is(err, queue.ErrTooLarge) {
				t.Errorf("%v is not ErrTooLarge", err)
			}
		})
	}
	if s := r.stats(); s.Pending() != 0 {
		t.Errorf("written: %+v", s)
	}
	r.in(func(tx pgx.Tx) {
		results := r.box.In(tx).Publish(t.Context(), "q", []queue.Publication{text("", "good").Publication, text("", long).Publication})
		if results[0].Err != nil || results[0].ID == "" || !errors.Is(results[1].Err, ErrInvalid) {
			t.Errorf("results %+v", results)
		}
	})
	if s := r.stats(); s.Fresh != 1 {
		t.Errorf("written: %+v", s)
	}
}

// TestEnqueueMany: many jobs go in at once, and their ids are in their order.
func TestEnqueueMany(t *testing.T) {
	t.Parallel()
	const n = 10_100
	const q = "jobs"
	r := newRig(t, pgdb.Config{})
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = text(q, fmt.Sprint(i))
	}
	ids := r.enqueue(jobs...)
	if len(ids) != n || !slices.IsSorted(ids) {
		t.Fatalf("%d ids", len(ids))
	}
	table := pgx.Identifier{r.schema, "outbox"}.Sanitize()
	for _, i := range []int{0, 1, 9_999, 10_000, n - 1} {
		var body []byte
		if err := r.pool.QueryRow(t.Context(), "SELECT body FROM "+table+" WHERE id = $1", ids[i]).Scan(&body); err != nil || string(body) != fmt.Sprint(i) {
			t.Errorf("id of job %d is that of %q: %v", i, body, err)
		}
	}
	if s := r.stats(); s.Fresh != n {
		t.Errorf("%+v", s)
	}
}

// TestLargeJobs are read within the bound on bytes, at least one at a time.
func TestLargeJobs(t *testing.T) {
	t.Parallel()
	const size = 100_000
	r := newEmbedded(t)
	q := r.queue("jobs")
	for i := range 5 {
		job := text(q, strings.Repeat(fmt.Sprint(i), size))
		job.OrderingKey = "k"
		r.enqueue(job)
	}
	relay := r.idleRelay(RelayConfig{})
	for limit, want := range map[int]int{1: 1, 2*size + 1: 3, 100 * size: 5} {
		relay.bytes = limit
		rows, _, _, err := relay.read(t.Context(), 1)
		if err != nil || len(rows) != want {
			t.Fatalf("read %d jobs of %d bytes with a bound of %d, want %d: %v", len(rows), size, limit, want, err)
		}
		relay.giveBack(t.Context(), 1)
	}
	r.relay(RelayConfig{})
	for i, l := range r.receive(q, 5) {
		if len(l.Body) != size || l.Body[0] != byte('0'+i) {
			t.Errorf("job %d has %d bytes", i, len(l.Body))
		}
	}
}

// TestFIFOQueuesAreOrderedByGroup where the box knows the broker.
func TestFIFOQueuesAreOrderedByGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgdb.Config{})
	useSQS(r, ".fifo")
	q := r.queue("jobs")
	r.box = r.newBox(Config{Capabilities: r.broker.Capabilities})
	for i := range 6 {
		job := text(q, fmt.Sprint(i))
		job.Group = "g"
		if i == 2 {
			job.Delay = 300 * time.Millisecond // the queue takes none: those behind it wait
		}
		r.enqueue(job)
	}
	r.relay(RelayConfig{})
	if got := fmt.Sprint(bodies(r.receive(q, 6))); got != "[0 1 2 3 4 5]" {
		t.Errorf("received %s", got)
	}
}

func TestConfigsAreChecked(t *testing.T) {
	t.Parallel()
	r := newEmbedded(t)
	good := RelayConfig{Pool: r.pool, Broker: r.broker}
	for want, change := range map[string]func(*RelayConfig){
		"pool is required":   func(c *RelayConfig) { c.Pool = nil },
		"broker is required": func(c *RelayConfig) { c.Broker = nil },
		"parallel 17":        func(c *RelayConfig) { c.Parallel = 17 },
		"batch -1":           func(c *RelayConfig) { c.Batch = -1 },
		"lease 10ms":         func(c *RelayConfig) { c.Lease = 10 * time.Millisecond },
		"publish timeout":    func(c *RelayConfig) { c.PublishTimeout = time.Hour },
		"max attempts -1":    func(c *RelayConfig) { c.MaxAttempts = -1 },
		"poll -1s":           func(c *RelayConfig) { c.Poll = -time.Second },
		"not shown":          func(c *RelayConfig) { c.DirectURL = "postgres://user:hunter2@host:port/db" },
	} {
		cfg := good
		change(&cfg)
		_, err := NewRelay(cfg)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := NewRelay(good); err != nil {
		t.Error(err)
	}
	if _, err := r.box.Enqueue(t.Context(), nil, text("q", "x")); err == nil {
		t.Error("enqueued without a transaction")
	}
}

// TestPausesGrow: a queue that takes nothing is asked less and less often, and others are not concerned.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, asked := newPauses(), 0
		start := time.Now()
		for time.Since(start) < time.Minute {
			if !slices.Contains(p.now(time.Now()), "q") {
				if first := p.failed("q", time.Now()); first != (asked == 0) || p.failed("q", time.Now()) {
					t.Error("first", first)
				}
				asked++
			}
			time.Sleep(p.next(time.Now()))
		}
		if asked < 12 || asked > 40 {
			t.Errorf("asked %d times in a minute", asked)
		}
		if slices.Contains(p.now(time.Now()), "other") || !p.worked("q") || p.worked("q") || p.next(time.Now()) != 0 {
			t.Error("the pause did not end")
		}
	})
}

// TestEveryExecMode: the caller's connection may speak to the server in any of pgx's ways.
func TestEveryExecMode(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgdb.Config{})
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	for _, mode := range modes {
		cfg := r.pool.Config().ConnConfig.Copy()
		cfg.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		keyed, plain := text(mode.String(), string(everyByte())), text(mode.String(), "")
		keyed.OrderingKey, keyed.Group, keyed.Headers = "\x00\xff", "g'\\", map[string]string{"'": "\x00"}
		var ids []int64
		err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) (err error) {
			ids, err = r.box.Enqueue(t.Context(), tx, keyed, plain)
			return err
		})
		if err != nil || len(ids) != 2 {
			t.Errorf("%s: %v, %v", mode, ids, err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	r.broker = openEmbedded(t, t.TempDir()+"/queue.db")
	var rows []row
	for token, leased := int64(1), true; leased; token++ {
		var more []row
		var err error
		if more, leased, _, err = r.idleRelay(RelayConfig{}).read(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, more...)
	}
	if len(rows) != 2*len(modes) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		switch {
		case row.key == nil && len(row.pub.Body) == 0 && row.pub.Group == "" && row.pub.Headers == nil:
		case string(row.key) == "\x00\xff" && string(row.pub.Body) == string(everyByte()) && row.pub.Group == "g'\\" && row.pub.Headers["'"] == "\x00":
		default:
			t.Errorf("%s: %+v", row.queue, row)
		}
	}
}
