package runtime

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/fleet"
	fleetpostgres "github.com/caisson-go/caisson/internal/fleet/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// idle returns a worker that has a queue and nothing to do, and runs until the test ends.
func idle(t *testing.T) *worker.Worker {
	t.Helper()
	broker, err := embedded.Open(t.Context(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	letters, err := dlqsqlite.Open(t.Context(), dlqsqlite.Config{Path: broker.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = letters.Close() })
	registry := worker.NewRegistry()
	config := worker.KindConfig{Destination: "Mail", Bulkhead: 2, Keyed: new(false), MaxAttempts: 7}
	worker.Handle(registry, worker.Kind[[]byte]{Name: "note", Config: config}, func(context.Context, []byte) error { return nil })
	w, err := worker.New(worker.Config{Broker: broker, Registry: registry, DeadLetters: letters, Owner: "me", Concurrency: 3})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	eventually.True(t, "ready", func() bool { return w.Ready() == nil })
	return w
}

// TestReportsSurviveAStatusStoreThatIsAway: a worker tells of itself as soon as the database is there, and neither waits for it nor fails with it.
func TestReportsSurviveAStatusStoreThatIsAway(t *testing.T) {
	t.Parallel()
	direct, schema := testserver.Schema(t)
	target, err := url.Parse(testserver.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := testserver.StartProxy(t, target.Host)
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: proxy.URL(target.String()), ConnectTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	proxy.Cut()

	w := idle(t)
	w.Destinations().Force("https://user:pw@shop.example.com/x?token=y", time.Now(), breaker.OverrideOpen)
	log := &lines{}
	stop := startReports(t.Context(), fleetpostgres.New(pool, fleetpostgres.Config{Schema: schema}), "embedded", w, slog.New(slog.NewTextHandler(log, nil)))
	eventually.True(t, "the log tells that the status store is away", func() bool { return log.count("tools do not see this worker") == 1 })

	proxy.Restore()
	statuses := fleetpostgres.New(direct, fleetpostgres.Config{Schema: schema})
	reports := func() []fleet.Report {
		all, err := statuses.Reports(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	eventually.True(t, "the report is there", func() bool { return len(reports()) == 1 })
	eventually.True(t, "the log tells that it is back", func() bool { return log.count("tools see this worker again") == 1 })
	r := reports()[0]
	if r.Owner != "me" || r.PID == 0 || r.Broker != "embedded" || r.NotReady != "" || len(r.Queues) != 1 || r.Queues[0].Slots == 0 || r.Started.IsZero() {
		t.Errorf("report %+v", r)
	}
	if len(r.Kinds) != 1 || r.Kinds[0] != (fleet.Kind{Name: "note", MaxAttempts: 7, Destination: "Mail", Pool: "note"}) {
		t.Errorf("kinds %+v", r.Kinds)
	}
	if len(r.Pools) != 1 || r.Pools[0] != (fleet.Pool{Name: "note", Size: 2}) {
		t.Errorf("pools %+v", r.Pools)
	}
	if v := fleet.Look([]fleet.Report{r}, "shop.example.com"); v.Refusing != 1 || v.Worst.Override != "forced_open" {
		t.Errorf("destinations %+v", r.Destinations)
	}
	stop()
	if left := reports(); len(left) != 0 {
		t.Errorf("after a clean stop there are %d reports", len(left))
	}
}

// TestStopDoesNotWaitForAStatusStoreThatHangs: a network that swallows everything costs a stop no more than the farewell.
func TestStopDoesNotWaitForAStatusStoreThatHangs(t *testing.T) {
	t.Parallel()
	_, schema := testserver.Schema(t)
	target, err := url.Parse(testserver.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := testserver.StartProxy(t, target.Host)
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: proxy.URL(target.String()), ConnectTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Blackhole(true)
	t.Cleanup(func() {
		proxy.Blackhole(false)
		proxy.Cut() // what hangs in the pool ends
		pool.Close()
	})
	stop := startReports(t.Context(), fleetpostgres.New(pool, fleetpostgres.Config{Schema: schema}), "embedded", idle(t), slog.New(slog.DiscardHandler))
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(2 * time.Minute):
		t.Fatal("the stop waits for the status store")
	}
}
