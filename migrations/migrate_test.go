package migrations_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/migrations"
)

// Variables of the test binary when it runs as a program that migrates.
const (
	envURL    = "MIGRATIONS_TEST_URL"
	envSchema = "MIGRATIONS_TEST_SCHEMA"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(envURL); url != "" {
		os.Exit(migrate(url, os.Getenv(envSchema)))
	}
	os.Exit(m.Run())
}

// migrate prints how many steps it applied.
func migrate(url, schema string) int {
	ctx := context.Background()
	pool, err := pgdb.Open(ctx, pgdb.Config{URL: url, MaxConns: 1})
	if err == nil {
		defer pool.Close()
		var done []migrations.Step
		done, err = migrations.Up(ctx, pool, schema)
		fmt.Print(len(done))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// open opens a pool on the shared server.
func open(t *testing.T, cfg pgdb.Config) *pgxpool.Pool {
	t.Helper()
	if cfg.URL == "" {
		cfg.URL = testserver.Postgres(t)
	}
	pool, err := pgdb.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// fresh returns the name of a schema that does not exist, and drops it in the end.
func fresh(t *testing.T, prefix string) (*pgxpool.Pool, string) {
	t.Helper()
	pool, schema := open(t, pgdb.Config{MaxConns: 10}), prefix+strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() { exec1(t, pool, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE") })
	return pool, schema
}

func exec1(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if _, err := pool.Exec(ctx, sql); err != nil {
		t.Error(err)
	}
}

func TestUpDownUp(t *testing.T) {
	t.Parallel()
	for _, cfg := range []pgdb.Config{{}, {Pooler: true}} {
		pool, schema := open(t, cfg), "cs_updown_"+strings.ToLower(rand.Text()[:8])
		t.Cleanup(func() { exec1(t, pool, "DROP SCHEMA IF EXISTS "+schema+" CASCADE") })
		if err := migrations.Check(t.Context(), pool, schema); !errors.Is(err, migrations.ErrOlder) || !strings.Contains(err.Error(), "worker migrate up") {
			t.Errorf("no schema gives %v", err)
		}
		for range 2 {
			if done, err := migrations.Up(t.Context(), pool, schema); err != nil || len(done) != migrations.Latest() {
				t.Fatalf("applied %d steps of %d: %v", len(done), migrations.Latest(), err)
			}
			if err := migrations.Check(t.Context(), pool, schema); err != nil {
				t.Fatal(err)
			}
			if done, err := migrations.Up(t.Context(), pool, schema); err != nil || len(done) != 0 {
				t.Fatalf("applied %d steps again: %v", len(done), err)
			}
			if undone, err := migrations.Down(t.Context(), pool, schema, 1); err != nil || len(undone) != 1 || undone[0].Version != migrations.Latest() {
				t.Fatalf("took back %v: %v", undone, err)
			}
			if undone, err := migrations.Down(t.Context(), pool, schema, 100); err != nil || len(undone) != migrations.Latest()-1 {
				t.Fatalf("took back %d steps of %d: %v", len(undone), migrations.Latest()-1, err)
			}
			if err := migrations.Check(t.Context(), pool, schema); !errors.Is(err, migrations.ErrOlder) {
				t.Errorf("an empty schema gives %v", err)
			}
		}
		var tables []string
		rows, err := pool.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = $1`, schema)
		if err == nil {
			tables, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil || !slices.Equal(tables, []string{"schema_migrations"}) {
			t.Errorf("the way down leaves %v, %v", tables, err)
		}
	}
}

// Ten at once, some of them processes of their own: each step is applied by one of them, and all end with tables that fit.
func TestManyMigrateAtOnce(t *testing.T) {
	t.Parallel()
	pool, schema := fresh(t, "cs_many_")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var applied atomic.Int32
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			n := 0
			var err error
			if i < 4 {
				cmd := exec.CommandContext(t.Context(), exe)
				cmd.Env = []string{envURL + "=" + testserver.Postgres(t), envSchema + "=" + schema}
				var out []byte
				if out, err = cmd.Output(); err == nil {
					_, err = fmt.Sscan(string(out), &n)
				}
			} else {
				var done []migrations.Step
				done, err = migrations.Up(t.Context(), pool, schema)
				n = len(done)
			}
			if err != nil {
				t.Errorf("number %d: %v", i, err)
			}
			applied.Add(int32(n)) //nolint:gosec // a handful
		})
	}
	all.Wait()
	if err := migrations.Check(t.Context(), pool, schema); err != nil || int(applied.Load()) != migrations.Latest() {
		t.Errorf("%d steps were applied, want %d: %v", applied.Load(), migrations.Latest(), err)
	}
}

func TestFailingStepLeavesNothing(t *testing.T) {
	t.Parallel()
	pool, schema := fresh(t, "cs_fail_")
	all := []migrations.Step{{Version: 1, Name: "good", Up: "CREATE TABLE a ()"}, {Version: 2, Name: "bad", Up: "CREATE TABLE b (); SELECT 1/0"}}
	if done, err := migrations.UpTo(t.Context(), pool, schema, all[1:]); err == nil || len(done) != 0 {
		t.Fatalf("a failing first step: %v, %v", done, err)
	}
	if n := count(t, pool, `SELECT count(*) FROM pg_namespace WHERE nspname = $1`, schema); n != 0 {
		t.Error("a failing first step leaves its schema")
	}
	done, err := migrations.UpTo(t.Context(), pool, schema, all)
	if err == nil || !strings.Contains(err.Error(), "step 2 (bad)") || len(done) != 1 {
		t.Fatalf("%v, %v", done, err)
	}
	if n := count(t, pool, `SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename IN ('a', 'b')`, schema); n != 1 {
		t.Errorf("%d tables, want that of the good step", n)
	}
	all[1].Up = "CREATE TABLE b ()"
	if done, err := migrations.UpTo(t.Context(), pool, schema, all); err != nil || len(done) != 1 {
		t.Errorf("after the mending: %v, %v", done, err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Tables of a newer program, and those of somebody else, are left as they are.
func TestOthersTablesAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		add  migrations.Step
		want error
		way  string
	}{
		"newer":   {migrations.Step{Version: migrations.Latest() + 1, Name: "later", Up: "SELECT 1"}, migrations.ErrNewer, "newer program"},
		"another": {migrations.Step{Version: migrations.Latest(), Name: "other", Up: "SELECT 1"}, migrations.ErrForeign, "postgres.schema"},
	} {
		pool, schema := fresh(t, "cs_other_")
		if _, err := migrations.UpTo(t.Context(), pool, schema, append(migrations.Steps()[:tt.add.Version-1:tt.add.Version-1], tt.add)); err != nil {
			t.Fatal(err)
		}
		_, up := migrations.Up(t.Context(), pool, schema)
		_, down := migrations.Down(t.Context(), pool, schema, 1)
		for does, err := range map[string]error{"check": migrations.Check(t.Context(), pool, schema), "up": up, "down": down} {
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.way) || !migrations.Refuses(err) {
				t.Errorf("%s: %s gives %v", name, does, err)
			}
		}
		if applied, err := migrations.Status(t.Context(), pool, schema); err != nil || len(applied) != tt.add.Version {
			t.Errorf("%s: %d steps left, %v", name, len(applied), err)
		}
	}
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{`cs Übung "x"; --`, "CS.Big'", "select"} {
		pool, schema := fresh(t, prefix)
		if _, err := migrations.Up(t.Context(), pool, schema); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
		if err := migrations.Check(t.Context(), pool, schema); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// A role that may not make schemas works in one that was made for it, and is told what it lacks elsewhere.
func TestRights(t *testing.T) {
	t.Parallel()
	admin, schema := fresh(t, "cs_rights_")
	role := "cs_role_" + strings.ToLower(rand.Text()[:12])
	exec1(t, admin, "CREATE ROLE "+role+" LOGIN PASSWORD 'hunter2'")
	t.Cleanup(func() { exec1(t, admin, "DROP OWNED BY "+role+" CASCADE; DROP ROLE "+role) })
	u := strings.Replace(testserver.Postgres(t), "postgres://postgres@", "postgres://"+role+":hunter2@", 1)
	pool := open(t, pgdb.Config{URL: u})
	_, err := migrations.Up(t.Context(), pool, schema)
	if err == nil || !strings.Contains(err.Error(), "AUTHORIZATION") || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("without a schema: %v", err)
	}
	exec1(t, admin, "CREATE SCHEMA "+schema)
	if _, err := migrations.Up(t.Context(), pool, schema); err == nil || !strings.Contains(err.Error(), "needs rights") {
		t.Fatalf("without rights: %v", err)
	}
	exec1(t, admin, "GRANT USAGE, CREATE ON SCHEMA "+schema+" TO "+role)
	if _, err := migrations.Up(t.Context(), pool, schema); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Check(t.Context(), pool, schema); err != nil {
		t.Error(err)
	}
	if _, err := migrations.Down(t.Context(), pool, schema, 100); err != nil {
		t.Error(err)
	}
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	pool := open(t, pgdb.Config{URL: "postgres://u:hunter2@127.0.0.1:1/d?sslmode=disable"})
	_, up := migrations.Up(t.Context(), pool, "")
	_, down := migrations.Down(t.Context(), pool, "", 1)
	for _, err := range []error{up, down, migrations.Check(t.Context(), pool, "")} {
		if !pgdb.Unavailable(err) || migrations.Refuses(err) || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("got %v", err)
		}
	}
}

func TestStepsSayWhatIsLost(t *testing.T) {
	t.Parallel()
	for i, s := range migrations.Steps() {
		if s.Version != i+1 || s.Name == "" || !strings.HasSuffix(s.Loses, ".") {
			t.Errorf("step %d: %q loses %q", s.Version, s.Name, s.Loses)
		}
	}
}
