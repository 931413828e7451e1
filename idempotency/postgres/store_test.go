package postgres_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/idempotency/storetest"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(ownerEnv); url != "" {
		claimAndWait(url)
		return
	}
	if os.Getenv("SOAK") == "" { // each step of the model is a round trip or more
		if err := flag.Set("rapid.checks", "5"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// open returns a store with tables of its own. Leaving out the schema and the clock is up to the caller.
func open(t testing.TB, db pgdb.Config, cfg postgres.Config) (*postgres.Store, *pgxpool.Pool, string) {
	t.Helper()
	if db.URL == "" {
		db.URL = testserver.Postgres(t)
	}
	pool, schema := testserver.SchemaAt(t, db)
	cfg.Schema = schema
	store, err := postgres.New(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store, pool, schema
}

// shiftedClock is the database's clock and an offset that the suite moves, so that hours pass at once.
type shiftedClock struct {
	t     *testing.T
	pool  *pgxpool.Pool
	table string
}

func (c *shiftedClock) pass(d time.Duration) {
	c.t.Helper()
	_, err := c.pool.Exec(c.t.Context(), "UPDATE "+c.table+" SET ahead = ahead + $1::int8 * interval '1 microsecond'", d.Microseconds())
	if err != nil {
		c.t.Fatal(err)
	}
}

func conformance(t *testing.T, db pgdb.Config) {
	if db.URL == "" {
		db.URL = testserver.Postgres(t)
	}
	storetest.Run(t, storetest.Harness{Finder: true, Fresh: func(t *testing.T) storetest.Harness { return harness(t, db) }})
}

// harness has a schema and a clock of its own. Generations are so short that each Expire opens a new one and drops those before it.
func harness(t *testing.T, db pgdb.Config) storetest.Harness {
	pool, schema := testserver.SchemaAt(t, db)
	clock := &shiftedClock{t: t, pool: pool, table: pgx.Identifier{schema, "test_clock"}.Sanitize()}
	_, err := pool.Exec(t.Context(), "CREATE TABLE "+clock.table+" AS SELECT interval '0' AS ahead", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	cfg := postgres.Config{Schema: schema, Generation: time.Millisecond, Keep: time.Nanosecond}.
		WithClock("(clock_timestamp() + (SELECT ahead FROM " + clock.table + "))")
	return storetest.Harness{
		Open: func(t *testing.T) idempotency.Store {
			store, err := postgres.New(pool, cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(store.Close)
			return store
		},
		Pass: clock.pass, Short: 10 * time.Second, Whole: true,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, pgdb.Config{})
}

// Without prepared statements, as through a pooler in transaction mode.
func TestConformancePooler(t *testing.T) {
	t.Parallel()
	conformance(t, pgdb.Config{Pooler: true})
}
