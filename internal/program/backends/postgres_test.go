package backends_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/migrations"
	"github.com/caisson-go/caisson/queue"
)

// onSchema is the configuration of an embedded queue with its store in a schema.
func onSchema(t *testing.T, database, schema string, more ...string) *config.Config {
	t.Helper()
	keys := map[string]string{
		"embedded.path": filepath.Join(t.TempDir(), "q.db"), "postgres.url": database, "postgres.schema": schema, "concurrency": "4",
	}
	for i := 0; i < len(more); i += 2 {
		keys[more[i]] = more[i+1]
	}
	return loadSet(t, keys)
}

func open(t *testing.T, cfg *config.Config) *backends.Set {
	t.Helper()
	s, err := backends.Open(t.Context(), cfg, backends.Create, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Claims, dead letters and the status store are in the database, and another process finds them there, through a pooler as well.
func TestPostgresHoldsTheStores(t *testing.T) {
	t.Parallel()
	_, schema := testserver.Schema(t)
	direct := testserver.Postgres(t)
	s := open(t, onSchema(t, direct, schema))
	entry := dlq.Entry{Job: "j", State: dlq.StateDead, Queue: "q", Kind: "k", Cause: dlq.CauseRejected}
	if err := errors.Join(s.DeadLetters.Put(t.Context(), []dlq.Entry{entry})...); err != nil {
		t.Fatal(err)
	}
	req := idempotency.Request{Key: idempotency.Key{Scope: "k", Value: "key"}, Job: "j", Owner: "o", Lease: time.Minute}
	if c := s.Claims.Claim(t.Context(), []idempotency.Request{req})[0]; c.Err != nil || c.Status != idempotency.StatusAcquired {
		t.Fatalf("claim: %+v", c)
	}
	if s.Mirror != nil || s.Sweeper != nil || s.BrokerDLQ != nil || s.Statuses == nil {
		t.Errorf("%+v", s)
	}
	if c := s.Postgres.Connections(); c.Most != 8 || c.InUse+c.Idle == 0 {
		t.Errorf("connections %+v", c)
	}
	second := open(t, onSchema(t, testserver.PgBouncer(t, direct), schema, "postgres.pooler", "true", "postgres.direct_url", direct))
	if n, err := second.Letters.Count(t.Context(), dlq.Filter{}); n != 1 || err != nil {
		t.Errorf("%d dead letters, %v", n, err)
	}
	if r, err := second.Claims.Get(t.Context(), req.Key); err != nil || r.Job != "j" {
		t.Errorf("claim: %+v, %v", r, err)
	}
	if err := errors.Join(second.Claims.Ping(t.Context()), second.Postgres.Ready(t.Context())); err != nil {
		t.Error(err)
	}
}

// With a networked broker the store's dead letters are copied there if asked for, and the broker's own looked after.
func TestPostgresBesideABroker(t *testing.T) {
	t.Parallel()
	_, schema := testserver.Schema(t)
	keys := []string{"broker", "rabbitmq", "rabbitmq.urls", testserver.AMQP(t), "queues", "never-made"}
	plain := open(t, onSchema(t, testserver.Postgres(t), schema, keys...))
	if plain.Mirror != nil || plain.Sweeper == nil || plain.DeadLetters != dlq.Sink(plain.Letters) || plain.BrokerDLQ != nil {
		t.Errorf("%+v", plain)
	}
	mirrored := open(t, onSchema(t, testserver.Postgres(t), schema, append(keys, "dlq.mirror", "broker")...))
	if mirrored.Mirror == nil || mirrored.DeadLetters != dlq.Sink(mirrored.Mirror) || mirrored.Letters == dlq.Store(mirrored.Mirror) {
		t.Errorf("%+v", mirrored)
	}
	if _, ok := mirrored.DeadLetters.(dlq.Store); !ok {
		t.Error("a worker could not hold jobs")
	}
}

func TestTablesOfAnotherVersionAreRefused(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	cfg := onSchema(t, testserver.Postgres(t), schema)
	db, err := backends.OpenPostgres(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	later(t, pool, schema)
	if err := db.Ready(t.Context()); !errors.Is(err, migrations.ErrNewer) {
		t.Errorf("readiness: %v", err)
	}
	if _, err := backends.OpenSoon(t.Context(), cfg, backends.Create); !errors.Is(err, migrations.ErrNewer) {
		t.Errorf("open: %v", err)
	}
	if s, err := backends.Open(t.Context(), onSchema(t, testserver.Postgres(t), "nowhere"), backends.Create, nil); !migrations.Refuses(err) {
		t.Errorf("no schema: %v, %v", s, err)
	}
}

// later lets the tables look as if a newer program had changed them.
func later(t *testing.T, pool *pgxpool.Pool, schema string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "INSERT INTO "+schema+".schema_migrations (version, name) VALUES ($1, 'later')", migrations.Latest()+1); err != nil {
		t.Fatal(err)
	}
}

// text is a log that a test reads while it is written.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *text) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A worker waits for a database that is away, and says so without its password; a tool gives up.
func TestDatabaseIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("postgres", "hunter2")
	cfg := onSchema(t, u.String(), "caisson")
	db, err := backends.OpenPostgres(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(t.Context(), db.Pool, db.Schema); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	server.Stop(t)
	_, soon := backends.OpenWithin(t.Context(), cfg, backends.Create, 300*time.Millisecond)
	if soon == nil || !strings.Contains(soon.Error(), "postgres at "+server.Addr()+"/postgres did not answer within 300ms") || strings.Contains(soon.Error(), "hunter2") {
		t.Errorf("a tool says %v", soon)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backends.Open(stopped, cfg, backends.Create, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("opened without a database")
	}
	var log text
	opened := make(chan error, 1)
	go func() {
		s, err := backends.Open(t.Context(), cfg, backends.Create, slog.New(slog.NewTextHandler(&log, nil)))
		if err == nil {
			err = errors.Join(s.Broker.CreateQueue(t.Context(), "q"), s.Claims.Ping(t.Context()), s.Close())
			if _, after := s.Broker.Queues(t.Context()); !errors.Is(after, queue.ErrClosed) {
				err = errors.Join(err, errors.New("the broker is open after Close"))
			}
		}
		opened <- err
	}()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(log.String(), "waiting for it") && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	server.Start(t)
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if l := log.String(); !strings.Contains(l, "postgres answers") || strings.Contains(l, "hunter2") {
		t.Errorf("the log:\n%s", l)
	}
}
