package outbox_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/migrations"
)

// openDatabase stands for what a program does at its start: a pool, and the tables, made by `worker migrate up`.
func openDatabase(ctx context.Context) (pool *pgxpool.Pool, schema string, drop func()) {
	pool, err := pgxpool.New(ctx, cmp.Or(os.Getenv(testserver.PostgresEnv), "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"))
	if err != nil {
		panic(err)
	}
	schema = "cs_example_" + strings.ToLower(rand.Text()[:10])
	if _, err := migrations.Up(ctx, pool, schema); err != nil {
		panic(err)
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE "+pgx.Identifier{schema, "orders"}.Sanitize()+" (id int, customer text)"); err != nil {
		panic(err)
	}
	return pool, schema, func() {
		if _, err := pool.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
			panic(err)
		}
		pool.Close()
	}
}
