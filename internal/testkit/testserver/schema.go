package testserver

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/migrations"
)

// Schema makes a schema of the test's own in the shared PostgreSQL, with all tables, and drops it when the test ends. The pool is closed with it.
func Schema(t testing.TB) (pool *pgxpool.Pool, schema string) {
	t.Helper()
	return SchemaAt(t, pgdb.Config{URL: Postgres(t)})
}

// SchemaAt is Schema in the database of cfg.
func SchemaAt(t testing.TB, cfg pgdb.Config) (pool *pgxpool.Pool, schema string) {
	t.Helper()
	pool, err := pgdb.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	schema = "cs_" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		if _, err := pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
			t.Errorf("drop schema %s: %v", schema, err)
		}
		pool.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := migrations.Up(ctx, pool, schema); err != nil {
		t.Fatal(err)
	}
	return pool, schema
}
