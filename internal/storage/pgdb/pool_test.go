package pgdb_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

func TestAddressHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://u:hunter2@h:5433/d":                     "h:5433/d",
		"postgres://u:hunter2@a,b:5433/d?sslmode=prefer":    "a:5432,b:5433/d",
		"host=h port=5432 user=u password=hunter2 dbname=d": "h:5432/d",
		"postgres://u:hunter2@[::1]/d?sslmode=disable":      "[::1]:5432/d",
		"postgres://u:hunter2@h:port/d":                     "a URL that cannot be read",
	} {
		if got := pgdb.Address(url); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRefusedURLsAreNotQuoted(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://u:hunter2@h:port/d":                                      "cannot be read",
		"postgres://u:hunter2@h/d?sslmode=hunter2":                           "cannot be read",
		"postgres://u:hunter2@h/d?sslmode=verify-full&sslrootcert=/none.pem": "/none.pem",
	} {
		err := pgdb.Config{URL: url}.Check()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A write that a standby refuses costs the connection, so that the next one can find the primary.
func TestReadOnlyConnectionsAreLeft(t *testing.T) {
	t.Parallel()
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: testserver.Postgres(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pid := func() (pid int) {
		if err := pool.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	before := pid()
	err = pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `CREATE TABLE none ()`)
		return err
	})
	if !pgdb.Unavailable(err) {
		t.Fatalf("got %v", err)
	}
	if after := pid(); after == before {
		t.Errorf("connection %d is still in use", before)
	}
}
