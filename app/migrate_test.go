package app_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/migrations"
)

// database is a schema of a test's own, which does not exist yet, and a role with a password that must never be seen.
type database struct {
	url, schema string
	env         []string
}

const password = "hunter2-never-seen"

// newDatabase sees to the removal of role and schema.
func newDatabase(t *testing.T) database {
	t.Helper()
	admin := testserver.Postgres(t)
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	name := "cs_app_" + strings.ToLower(rand.Text()[:10])
	sql := func(statements string) {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol)
		if closing := conn.Close(ctx); err != nil || closing != nil {
			t.Fatal(err, closing)
		}
	}
	sql("CREATE ROLE " + name + " LOGIN PASSWORD '" + password + "'; CREATE SCHEMA " + name + " AUTHORIZATION " + name)
	t.Cleanup(func() {
		sql("DROP SCHEMA IF EXISTS " + name + " CASCADE; DROP OWNED BY " + name + "; DROP ROLE " + name)
	})
	u.User = url.UserPassword(name, password)
	d := database{url: u.String(), schema: name}
	d.env = []string{"CAISSON_POSTGRES_URL=" + d.url, "CAISSON_POSTGRES_SCHEMA=" + name}
	return d
}

// silentOn fails the test if the password is in texts.
func silentOn(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(text, password) {
			t.Errorf("the password is shown:\n%s", text)
		}
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	run := func(code int, want string, args ...string) string {
		t.Helper()
		r := call(t, "", db.env, append([]string{"migrate"}, args...)...)
		silentOn(t, r.out, r.err)
		if r.code != code || !strings.Contains(r.out+r.err, want) {
			t.Fatalf("%v: exit code %d, want %d with %q\n%s%s", args, r.code, code, want, r.out, r.err)
		}
		return r.out
	}
	run(5, "run `worker migrate up`", "status")
	run(0, "applied step 1 (generations)\n", "up")
	run(0, "nothing to do\n", "up")
	run(0, "claims", "status")
	var state struct {
		State          string
		Version, Needs int
		Applied        []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(run(0, "", "status", "--json")), &state); err != nil || state.State != "current" || state.Version != migrations.Latest() ||
		len(state.Applied) != state.Needs {
		t.Errorf("%+v, %v", state, err)
	}
	steps := migrations.Steps()
	last, before := steps[len(steps)-1], steps[len(steps)-2]
	named := func(step migrations.Step) string { return fmt.Sprintf("step %d (%s)", step.Version, step.Name) }
	run(2, "Lost for good:\n  "+named(last)+": "+last.Loses, "down")
	run(2, "--steps 0", "down", "--steps", "0")
	run(0, "took back "+named(last)+"\ntook back "+named(before)+"\n", "down", "--yes", "--steps", "2")
	run(5, `"state":"older"`, "status", "--json")
	run(0, "applied "+named(before)+"\napplied "+named(last)+"\n", "up")
	run(0, fmt.Sprintf(`"undone":[{"version":%d,`, last.Version), "down", "--yes", "--steps", "99", "--json")
	run(0, "nothing to do", "down", "--yes")
}

// A program that is older than the tables changes nothing and says what to do; so does a worker at its start.
func TestTablesOfAnotherVersion(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	commands := [][]string{{"run", "--admin-addr", "off"}, {"enqueue", "k"}, {"queues"}, {"migrate", "status"}}
	dir := t.TempDir()
	refused := func(want string, commands ...[]string) {
		t.Helper()
		for _, args := range commands {
			r := callWith(t, new(record).setup, "", db.env, append(args, "--db", dir+"/q.db")...)
			silentOn(t, r.out, r.err)
			if r.code != 5 || !strings.Contains(r.err, want) {
				t.Errorf("%v: exit code %d\n%s", args, r.code, r.err)
			}
		}
	}
	refused("has version 0, this program needs", commands...)
	ok(t, call(t, "", db.env, "migrate", "up"))
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: db.url})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "INSERT INTO "+db.schema+".schema_migrations (version, name) VALUES ($1, 'later')", migrations.Latest()+1); err != nil {
		t.Fatal(err)
	}
	refused("run the newer program", slices.Concat(commands, [][]string{{"migrate", "up"}, {"migrate", "down", "--yes"}})...)
}

func TestMigrateWithoutADatabase(t *testing.T) {
	t.Parallel()
	away := []string{"CAISSON_POSTGRES_URL=postgres://u:" + password + "@127.0.0.1:1/d?sslmode=disable"}
	for _, args := range [][]string{{"up"}, {"down", "--yes"}, {"status"}} {
		r := call(t, "", away, append([]string{"migrate"}, append(args, "--wait", "100ms")...)...)
		silentOn(t, r.out, r.err)
		if r.code != 1 || !strings.Contains(r.err, "postgres at 127.0.0.1:1/d does not answer") {
			t.Errorf("%v: exit code %d\n%s", args, r.code, r.err)
		}
	}
	if r := call(t, "", nil, "migrate", "up"); r.code != 2 || !strings.Contains(r.err, "postgres.url") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	if r := call(t, "", []string{"CAISSON_POSTGRES_URL=" + strings.Replace(testserver.Postgres(t), "/postgres?", "/none?", 1)}, "migrate", "up"); r.code != 1 || !strings.Contains(r.err, `"none" does not exist`) {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}
