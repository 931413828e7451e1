package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/fleet/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/fleettest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	conform(t, pool, schema)
}

// TestConformanceThroughPgBouncer goes through a pooler in transaction mode.
func TestConformanceThroughPgBouncer(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.SchemaAt(t, pgdb.Config{URL: testserver.PgBouncer(t, testserver.Postgres(t)), Pooler: true})
	conform(t, pool, schema)
}

func conform(t *testing.T, pool *pgxpool.Pool, schema string) {
	t.Helper()
	fleettest.Run(t, fleettest.Harness{
		Open: func(*testing.T) fleet.StatusStore { return postgres.New(pool, postgres.Config{Schema: schema}) },
		Age:  func(t *testing.T, id string, d time.Duration) { age(t, pool, schema, id, d) },
	})
}

func age(t *testing.T, pool *pgxpool.Pool, schema, id string, d time.Duration) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `UPDATE `+pgx.Identifier{schema, "fleet"}.Sanitize()+` SET at = at - $1::bigint * interval '1 microsecond' WHERE id = $2::bytea`,
		d.Microseconds(), []byte(id))
	if err != nil {
		t.Fatal(err)
	}
}

// TestReportsReplaceEachOtherInPlace: many reports leave a small table, and a crash of the server leaves none until the next one. The server is the
// test's own: an old transaction of others would keep old versions.
func TestReportsReplaceEachOtherInPlace(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	pool, schema := testserver.SchemaAt(t, pgdb.Config{URL: server.URL()})
	statuses := postgres.New(pool, postgres.Config{Schema: schema})
	const workers, times = 20, 40
	publish := func() error {
		for i := range workers {
			r := fleet.Report{ID: fmt.Sprint("worker ", i), Sent: time.Now(), Destinations: []fleet.Destination{{Name: "shop.example.com", State: "open"}}}
			if err := statuses.Publish(t.Context(), r); err != nil {
				return err
			}
		}
		return nil
	}
	for range times {
		if err := publish(); err != nil {
			t.Fatal(err)
		}
	}
	var size int64
	err := pool.QueryRow(t.Context(), `SELECT pg_relation_size($1::text::regclass)`, pgx.Identifier{schema, "fleet"}.Sanitize()).Scan(&size)
	if err != nil {
		t.Fatal(err)
	}
	// 20 rows of some 300 bytes fill one page; 800 versions would fill thirty.
	if size > 8*8192 {
		t.Errorf("%d bytes after %d reports of %d workers", size, workers*times, workers)
	}

	server.Kill(t)
	if err := publish(); !errors.Is(err, fleet.ErrUnavailable) {
		t.Errorf("published to a server that was killed: %v", err)
	}
	server.Start(t)
	for deadline := time.Now().Add(2 * time.Minute); publish() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the status store does not come back")
		}
	}
	if got, err := statuses.Reports(t.Context()); len(got) != workers || err != nil {
		t.Errorf("%d reports, %v", len(got), err)
	}
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
	statuses := postgres.New(gone, postgres.Config{Schema: schema})
	if err := statuses.Publish(t.Context(), fleet.Report{ID: "a", Sent: time.Now()}); !errors.Is(err, fleet.ErrUnavailable) {
		t.Errorf("publish: %v", err)
	}
	if _, err := statuses.Reports(t.Context()); !errors.Is(err, fleet.ErrUnavailable) {
		t.Errorf("reports: %v", err)
	}
	if err := statuses.Remove(t.Context(), "a"); !errors.Is(err, fleet.ErrUnavailable) {
		t.Errorf("remove: %v", err)
	}
}

// TestTheDeadAreRemoved: by those that live, who leave alone what may still be read.
func TestTheDeadAreRemoved(t *testing.T) {
	t.Parallel()
	pool, schema := testserver.Schema(t)
	statuses := postgres.New(pool, postgres.Config{Schema: schema})
	publish := func(id string) {
		if err := statuses.Publish(t.Context(), fleet.Report{ID: id, Sent: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	publish("dead")
	age(t, pool, schema, "dead", 11*fleet.Live)
	publish("late")
	age(t, pool, schema, "late", 2*fleet.Live)
	statuses.SweepNext()
	publish("living")
	rows, err := pool.Query(t.Context(), `SELECT convert_from(id, 'UTF8') FROM `+pgx.Identifier{schema, "fleet"}.Sanitize()+` ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"late", "living"}, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
