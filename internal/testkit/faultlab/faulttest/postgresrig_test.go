package faulttest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/dlq"
	dlqpostgres "github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// place is a database of the test's own, with a network that can fail.
type place struct {
	server *testserver.PostgresServer
	url    string
	proxy  *testserver.Proxy
	// unprepared sends each statement whole, as through a pooler.
	unprepared bool
}

// newPlace makes a database on server.
func newPlace(t testing.TB, server *testserver.PostgresServer) *place {
	t.Helper()
	name := "place_" + strings.ToLower(rand.Text()[:12])
	command(t, server, "CREATE DATABASE "+name)
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return &place{server: server, url: u.String(), proxy: testserver.StartProxy(t, server.Addr())}
}

// command runs a statement beside every proxy.
func command(t testing.TB, server *testserver.PostgresServer, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// readOnly has the database refuse writes, as a standby does, or take them again. Sessions that do not know end.
func (p *place) readOnly(t testing.TB, on string) {
	t.Helper()
	name := p.url[strings.LastIndex(p.url, "/")+1 : strings.Index(p.url, "?")]
	command(t, p.server, "ALTER DATABASE "+name+" SET default_transaction_read_only = "+on)
	command(t, p.server, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '"+name+"'")
}

// postgresFault is a way for the database to be away.
type postgresFault struct {
	name         string
	strike, mend func(t testing.TB, p *place)
}

// killed ends the whole server.
var killed = postgresFault{"killed", func(t testing.TB, p *place) { p.server.Kill(t) }, func(t testing.TB, p *place) { p.server.Start(t) }}

// databaseFaults leave the server to others.
var databaseFaults = []postgresFault{
	{"cut off", func(_ testing.TB, p *place) { p.proxy.Cut() }, func(_ testing.TB, p *place) { p.proxy.Restore() }},
	{"silent", func(_ testing.TB, p *place) { p.proxy.Blackhole(true) }, func(_ testing.TB, p *place) { p.proxy.Blackhole(false) }},
	{"read-only", func(t testing.TB, p *place) { p.readOnly(t, "on") }, func(t testing.TB, p *place) { p.readOnly(t, "off") }},
}

// pool returns connections through the proxy to a schema that has its tables.
func (p *place) pool(t testing.TB) (pool *pgxpool.Pool, schema string) {
	t.Helper()
	_, schema = testserver.SchemaAt(t, pgdb.Config{URL: p.url})
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: p.proxy.URL(p.url), ConnectTimeout: time.Second, Pooler: p.unprepared})
	if err != nil {
		t.Fatal(err)
	}
	return pool, schema
}

// callTimeout ends calls that are not answered, so that a silent network is found out soon.
const callTimeout = time.Second

func openPostgres(pool *pgxpool.Pool, schema string) (*postgres.Store, *dlqpostgres.Store, error) {
	claims, err := postgres.New(pool, postgres.Config{Schema: schema, CallTimeout: callTimeout})
	if err != nil {
		return nil, nil, err
	}
	dead, err := dlqpostgres.New(pool, dlqpostgres.Config{Schema: schema})
	if err != nil {
		claims.Close()
		return nil, nil, err
	}
	return claims, dead, nil
}

// awayRig is an embedded queue with claims and dead letters in a place.
type awayRig struct {
	t      *testing.T
	schema string
	broker *embedded.Broker
	client *worker.Client
	claims idempotency.Store
	dead   dlq.Store
	watch  *counts
}

func (p *place) open(t *testing.T) *awayRig {
	t.Helper()
	pool, schema := p.pool(t)
	t.Cleanup(pool.Close)
	claims, dead, err := openPostgres(pool, schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claims.Close)
	broker, err := embedded.Open(t.Context(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := worker.NewClient(worker.ClientConfig{Broker: broker})
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.CreateQueue(t.Context(), worker.DefaultQueue); err != nil {
		t.Fatal(err)
	}
	return &awayRig{t: t, schema: schema, broker: broker, client: client, claims: claims, dead: dead, watch: &counts{}}
}

// start runs a worker until the test ends.
func (r *awayRig) start(cfg worker.Config) *worker.Worker {
	r.t.Helper()
	cfg.Broker, cfg.Store, cfg.DeadLetters, cfg.Observers = r.broker, r.claims, r.dead, []worker.Observer{r.watch}
	w, err := worker.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("run: %v", err)
		}
	})
	return w
}

func (r *awayRig) enqueue(kind string, n int) []string {
	r.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		var err error
		if ids[i], err = r.client.Enqueue(r.t.Context(), worker.NewJob{Kind: kind}); err != nil {
			r.t.Fatal(err)
		}
	}
	return ids
}
