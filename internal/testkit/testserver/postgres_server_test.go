package testserver

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// TestClusterKeepsWhatItCommitted restarts and kills a cluster. What was committed is there, what was not is gone.
func TestClusterKeepsWhatItCommitted(t *testing.T) {
	t.Parallel()
	p := StartPostgres(t)
	query(t, p.URL(), `CREATE TABLE kept (n int)`)
	query(t, p.URL(), `INSERT INTO kept VALUES (1)`)
	p.Restart(t)
	count(t, p.URL(), "1")
	query(t, p.URL(), `INSERT INTO kept VALUES (2)`)
	conn := login(t, p.URL())
	if _, err := conn.Exec(t.Context(), `BEGIN; INSERT INTO kept VALUES (3)`); err != nil {
		t.Fatal(err)
	}
	p.Kill(t)
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a session survives the kill")
	}
	if mentioned(t, p.dir) {
		t.Error("a process survives the kill")
	}
	if _, err := pgx.Connect(t.Context(), p.URL()); !pgdb.Unavailable(err) {
		t.Errorf("a killed cluster answers with %v", err)
	}
	p.Start(t)
	count(t, p.URL(), "2")
	if log := p.log(t.Context()); !strings.Contains(log, "not properly shut down") {
		t.Errorf("the kill was no crash:\n%s", log)
	}
}

func TestClusterIsDurableUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	p := StartPostgres(t)
	if got := query(t, p.URL(), `SELECT current_setting('fsync') || current_setting('synchronous_commit')`); got != "onon" {
		t.Errorf("fsync and synchronous_commit are %s", got)
	}
	p = StartPostgresWith(t, PostgresConfig{Volatile: true, Conf: []string{"max_connections = 7"}})
	if got := query(t, p.URL(), `SELECT current_setting('fsync') || current_setting('max_connections')`); got != "off7" {
		t.Errorf("fsync and max_connections are %s", got)
	}
	dir := p.dir
	p.Kill(t)
	if err := p.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("its directory is left: %v", err)
	}
}

// TestClusterThatCannotStart says so at once, with the reason.
func TestClusterThatCannotStart(t *testing.T) {
	t.Parallel()
	p := newPostgres(t, PostgresConfig{Conf: []string{"no_such_setting = 1"}})
	t.Cleanup(func() {
		if err := p.remove(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := p.launch(ctx); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Fatalf("got %v, want an error that names the setting", err)
	}
}

func TestMissingProgramsAreExplained(t *testing.T) {
	t.Setenv("PATH", "")
	if _, err := postgresPrograms("/nowhere/*"); err == nil || !strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("without PostgreSQL's programs: %v", err)
	}
	if _, err := pgbouncerProgram([]string{"/nowhere/pgbouncer"}); err == nil || !strings.Contains(err.Error(), "apt-get install pgbouncer") {
		t.Errorf("without pgbouncer: %v", err)
	}
}

func login(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // its server may be gone
	return conn
}

// query returns the first value of the last row, as text.
func query(t *testing.T, url, sql string) string {
	t.Helper()
	rows, err := login(t, url).PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if last := rows[len(rows)-1]; len(last.Rows) > 0 {
		return string(last.Rows[0][0])
	}
	return ""
}

func count(t *testing.T, url, want string) {
	t.Helper()
	if got := query(t, url, `SELECT count(*) FROM kept`); got != want {
		t.Errorf("%s rows, want %s", got, want)
	}
}
