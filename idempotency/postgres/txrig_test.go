package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// joinRig is a store whose transactions are tested, and the tables of a user beside it. pool is the store's; what the rig looks at, it looks at
// through a pool of its own, which no fault touches.
type joinRig struct {
	t      *testing.T
	store  *postgres.Store
	pool   *pgxpool.Pool
	direct *pgxpool.Pool
	schema string

	effects  string // job text, without any constraint
	once     string // id int, unique
	onceName pgx.Identifier
	child    string // id int, a deferred foreign key to once
}

func joined(t *testing.T, cfg postgres.Config) *joinRig {
	t.Helper()
	return joinedAt(t, pgdb.Config{URL: testserver.Postgres(t)}, pgdb.Config{URL: testserver.Postgres(t)}, cfg)
}

// joinedAt reaches the database through at, and looks at it through direct.
func joinedAt(t *testing.T, direct, at pgdb.Config, cfg postgres.Config) *joinRig {
	t.Helper()
	direct.MaxConns = 2
	look, schema := testserver.SchemaAt(t, direct)
	pool, err := pgdb.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	cfg.Schema = schema
	store, err := postgres.New(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	name := func(table string) string { return pgx.Identifier{schema, table}.Sanitize() }
	r := &joinRig{
		t: t, store: store, pool: pool, direct: look, schema: schema,
		effects: name("effects"), once: name("once"), onceName: pgx.Identifier{schema, "once"}, child: name("child"),
	}
	r.exec("CREATE TABLE " + r.effects + " (job text)")
	r.exec("CREATE TABLE " + r.once + " (id int PRIMARY KEY)")
	r.exec("CREATE TABLE " + r.child + " (id int REFERENCES " + r.once + " DEFERRABLE INITIALLY DEFERRED)")
	return r
}

func (r *joinRig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.direct.Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *joinRig) claim(name string) idempotency.Handle {
	r.t.Helper()
	return r.claimFor(name, time.Minute)
}

func (r *joinRig) claimFor(name string, lease time.Duration) idempotency.Handle {
	r.t.Helper()
	key := idempotency.Key{Scope: "k", Value: name}
	c := r.ask(key, lease)
	if c.Status != idempotency.StatusAcquired {
		r.t.Fatalf("claim of %s: %+v", name, c)
	}
	return idempotency.Handle{Key: key, Job: name, Token: c.Token}
}

func (r *joinRig) ask(key idempotency.Key, lease time.Duration) idempotency.Claim {
	return r.store.Claim(r.t.Context(), []idempotency.Request{{Key: key, Job: key.Value, Owner: "test", Lease: lease}})[0]
}

// takeOver claims a key whose claim runs out soon.
func (r *joinRig) takeOver(held idempotency.Handle) idempotency.Handle {
	r.t.Helper()
	for {
		c := r.ask(held.Key, time.Minute)
		switch {
		case c.Status == idempotency.StatusAcquired:
			held.Token = c.Token
			return held
		case c.Err != nil || c.Wait > time.Second:
			r.t.Fatalf("take over %s: %+v", held.Key.Value, c)
		}
	}
}

func (r *joinRig) begin(held idempotency.Handle) idempotency.Tx {
	r.t.Helper()
	tx, err := r.store.Begin(r.t.Context(), held)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func handleOf(tx idempotency.Tx) pgx.Tx { return tx.Handle().(pgx.Tx) }

func (r *joinRig) insert(tx idempotency.Tx, job string) {
	r.t.Helper()
	if _, err := handleOf(tx).Exec(r.t.Context(), "INSERT INTO "+r.effects+" VALUES ($1)", job); err != nil {
		r.t.Fatal(err)
	}
}

func (r *joinRig) rows(job string) (n int) {
	r.t.Helper()
	if err := r.direct.QueryRow(r.t.Context(), "SELECT count(*) FROM "+r.effects+" WHERE job = $1", job).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r *joinRig) record(key idempotency.Key) idempotency.Record {
	r.t.Helper()
	record, err := r.store.Get(r.t.Context(), key)
	if err != nil {
		r.t.Fatal(err)
	}
	return record
}

// is wants the claim in a state and its effect stored so many times, and no connection in use.
func (r *joinRig) is(held idempotency.Handle, state idempotency.Status, rows int) {
	r.t.Helper()
	record := r.record(held.Key)
	if record.State != state || record.Token != held.Token {
		r.t.Errorf("the claim is %s with token %d, want %s with %d", record.State, record.Token, state, held.Token)
	}
	if n := r.rows(held.Key.Value); n != rows {
		r.t.Errorf("%d rows are stored, want %d", n, rows)
	}
}

// idle wants all connections back in the pool soon.
func (r *joinRig) idle() {
	r.t.Helper()
	r.soon("all connections are back", func() bool { return r.pool.Stat().AcquiredConns() == 0 })
}

func (r *joinRig) soon(what string, is func() bool) {
	r.t.Helper()
	eventually.True(r.t, what, is)
}
