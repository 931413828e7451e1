package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
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

func conformance(t *testing.T, cfg pgdb.Config) {
	t.Helper()
	dlqtest.Run(t, dlqtest.Harness{Fresh: func(t *testing.T) dlqtest.Harness {
		pool, schema := testserver.SchemaAt(t, cfg)
		return dlqtest.Harness{
			Open: func(t *testing.T) dlq.Store { return open(t, pool, postgres.Config{Schema: schema}) },
			Pass: time.Sleep, Short: 2 * time.Second, // several statements have to fit into it on a busy machine
		}
	}})
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
