package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/endpointtest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/endpoints/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func conform(t *testing.T, cfg pgdb.Config) {
	t.Helper()
	endpointtest.Run(t, endpointtest.Harness{Fresh: func(t *testing.T) endpointtest.Harness { return harness(t, cfg) }})
}

func harness(t *testing.T, cfg pgdb.Config) endpointtest.Harness {
	t.Helper()
	pool, schema := testserver.SchemaAt(t, cfg)
	return endpointtest.Harness{
		Open: func(*testing.T) endpoints.Store { return postgres.New(pool, postgres.Config{Schema: schema}) },
		Age: func(t *testing.T, id string, d time.Duration) {
			t.Helper()
			_, err := pool.Exec(t.Context(), `UPDATE `+table(schema, "webhook_endpoints")+` SET updated_at = updated_at - $1::bigint * interval '1 microsecond'
				WHERE id = $2::bytea`, d.Microseconds(), []byte(id))
			if err != nil {
				t.Fatal(err)
			}
		},
	}
}

func table(schema, name string) string { return pgx.Identifier{schema, name}.Sanitize() }

func TestConformance(t *testing.T) {
	t.Parallel()
	conform(t, pgdb.Config{URL: testserver.Postgres(t)})
}

// TestConformancePgBouncer goes through a pooler in transaction mode: hardly two transactions run in the same session.
func TestConformancePgBouncer(t *testing.T) {
	t.Parallel()
	conform(t, pgdb.Config{URL: testserver.PgBouncer(t, testserver.Postgres(t)), Pooler: true})
}

// TestTheRowsHoldNothingInTheClear looks through all rows of all tables of the schema.
func TestTheRowsHoldNothingInTheClear(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	endpointtest.NothingInTheClear(t, postgres.New(pool, postgres.Config{Schema: schema}), func(t *testing.T) []byte {
		t.Helper()
		rows, err := pool.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'r'`, schema)
		if err != nil {
			t.Fatal(err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(names) < 5 {
			t.Fatalf("tables are %v, %v", names, err)
		}
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		var dump appender
		for _, name := range names {
			if _, err := conn.Conn().PgConn().CopyTo(t.Context(), &dump, "COPY "+table(schema, name)+" TO STDOUT (FORMAT binary)"); err != nil {
				t.Fatal(err)
			}
		}
		return dump
	})
}

type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

func TestAServerThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	cfg := pool.Config()
	cfg.ConnConfig.Port, cfg.ConnConfig.Fallbacks = 1, nil // nobody listens there
	gone, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	store := postgres.New(gone, postgres.Config{Schema: schema})
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"insert":    func() error { _, err := store.Insert(ctx, endpoints.Record{ID: "a"}); return err },
		"update":    func() error { _, err := store.Update(ctx, endpoints.Record{ID: "a"}); return err },
		"delete":    func() error { return store.Delete(ctx, "a", 1) },
		"get":       func() error { _, err := store.Get(ctx, "a"); return err },
		"list":      func() error { _, err := store.List(ctx, endpoints.Filter{}, "", 1); return err },
		"changes":   func() error { _, err := store.Changes(ctx, 0, 1); return err },
		"report":    func() error { _, err := store.Report(ctx, []endpoints.Delta{{Endpoint: "a"}}); return err },
		"health":    func() error { _, err := store.Health(ctx, "a"); return err },
		"recovered": func() error { return store.Recovered(ctx, "a") },
	} {
		if err := call(); !errors.Is(err, endpoints.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRevisionsAreInTheOrderOfCommits: while one transaction has taken a revision, no later one can be seen, so that no mirror skips it.
func TestRevisionsAreInTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	store := postgres.New(pool, postgres.Config{Schema: schema})
	first, err := store.Insert(t.Context(), endpoints.Record{ID: "first"})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Rollback(t.Context()) }()
	if _, err := slow.Exec(t.Context(), `UPDATE `+table(schema, "webhook_endpoint_revision")+` SET revision = revision + 1`); err != nil {
		t.Fatal(err)
	}
	inserted := make(chan error, 1)
	go func() {
		_, err := store.Insert(t.Context(), endpoints.Record{ID: "later"})
		inserted <- err
	}()
	waiting := func() (n int) {
		const ask = `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1::text in query) > 0`
		if err := pool.QueryRow(t.Context(), ask, schema).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for deadline := time.Now().Add(2 * time.Minute); waiting() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the later insert does not wait")
		}
	}
	if changes, err := store.Changes(t.Context(), first.Revision, 10); err != nil || len(changes) != 0 {
		t.Errorf("changes while a transaction is open: %v, %v", changes, err)
	}
	const insert = ` (id, tenant, state, reason, settings, sealed, key, created_at, updated_at, revision, deleted)
		SELECT 'slow', '', 'active', '', '', '', '', now(), now(), revision, false FROM `
	if _, err := slow.Exec(t.Context(), `INSERT INTO `+table(schema, "webhook_endpoints")+insert+table(schema, "webhook_endpoint_revision")); err != nil {
		t.Fatal(err)
	}
	if err := slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-inserted; err != nil {
		t.Fatal(err)
	}
	changes, err := store.Changes(t.Context(), first.Revision, 10)
	if err != nil || len(changes) != 2 || changes[0].ID != "slow" || changes[1].ID != "later" {
		t.Errorf("changes: %+v, %v", changes, err)
	}
}
