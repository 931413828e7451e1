package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/journaltest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/webhook/journal/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, pool *pgxpool.Pool, cfg postgres.Config) *postgres.Store {
	t.Helper()
	store, err := postgres.New(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// conformance opens a new generation with each Expire.
func conformance(t *testing.T, cfg pgdb.Config) {
	t.Helper()
	journaltest.Run(t, journaltest.Harness{
		Open: func(t *testing.T) journaltest.Store {
			pool, schema := testserver.SchemaAt(t, cfg) // of its own: each test leaves generations behind
			return open(t, pool, postgres.Config{Schema: schema, Generation: time.Microsecond})
		},
		Pass: time.Sleep,
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, pgdb.Config{URL: testserver.Postgres(t)})
}

// Statements as a pooler in transaction mode needs them.
func TestConformanceUnprepared(t *testing.T) {
	t.Parallel()
	conformance(t, pgdb.Config{URL: testserver.Postgres(t), Pooler: true})
}

// TestConformancePgBouncer has no session of its own: hardly two transactions run in the same one.
func TestConformancePgBouncer(t *testing.T) {
	t.Parallel()
	conformance(t, pgdb.Config{URL: testserver.PgBouncer(t, testserver.Postgres(t)), Pooler: true})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := postgres.New(nil, postgres.Config{}); err == nil {
		t.Error("a store without a pool is made")
	}
	pool, _ := testserver.Schema(t)
	if _, err := postgres.New(pool, postgres.Config{Generation: -1}); err == nil {
		t.Error("a negative generation is taken")
	}
}
