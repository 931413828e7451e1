package testserver

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
)

// TestPoolerKeepsNoSession has the transactions of one client run in different sessions of the server.
func TestPoolerKeepsNoSession(t *testing.T) {
	t.Parallel()
	url := PgBouncer(t, Postgres(t))
	pool, _ := SchemaAt(t, pgdb.Config{URL: url, Pooler: true, MaxConns: 4})
	// Two transactions at once make the pooler open two sessions.
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := pool.Exec(t.Context(), `SELECT 1`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	sessions := map[int32]bool{}
	for range 4 {
		var pid int32
		if err := conn.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		sessions[pid] = true
	}
	if len(sessions) < 2 {
		t.Errorf("four transactions ran in one session")
	}
}

// TestPoolerOutlivesItsServer keeps its address while the server is away.
func TestPoolerOutlivesItsServer(t *testing.T) {
	t.Parallel()
	p := StartPostgres(t)
	url := PgBouncer(t, p.URL())
	ask := func() error {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(t.Context()) }()
		_, err = conn.Exec(t.Context(), `SELECT 1`, pgx.QueryExecModeExec)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	p.Restart(t)
	// The first answers may come from sessions that it has not yet found closed.
	eventually.True(t, "the pooler has found its server again", func() bool { return ask() == nil })
}
