package testserver

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// VirtualSchema is [Schema] for a test in a synctest bubble: for the pool's connections the database's clock shows the bubble's time, so that hours
// pass at once there too. Time stands still while a statement is under way.
func VirtualSchema(t testing.TB) (pool *pgxpool.Pool, schema string) {
	t.Helper()
	cfg := pgdb.Config{URL: Postgres(t)}
	plain, schema := SchemaAt(t, cfg)
	clock := schema + "_clock"
	makeClock(t, plain, clock)
	// Functions that the search path names before pg_catalog are found first.
	pc := plain.Config()
	pc.ConnConfig.RuntimeParams["search_path"] = clock + ", pg_catalog"
	pc.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		_, err := conn.Exec(ctx, `SELECT set_config('caisson.clock', $1, false)`, time.Now().UTC().Format(time.RFC3339Nano))
		return err == nil, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), pc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, schema
}

func makeClock(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	ident := pgx.Identifier{schema}.Sanitize()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		if _, err := pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+ident+" CASCADE"); err != nil {
			t.Errorf("drop schema %s: %v", schema, err)
		}
	})
	sql := "CREATE SCHEMA " + ident
	for _, name := range []string{"clock_timestamp", "now", "statement_timestamp", "transaction_timestamp"} {
		sql += "; CREATE FUNCTION " + ident + "." + name + "() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT current_setting('caisson.clock')::timestamptz $$"
	}
	if _, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}
