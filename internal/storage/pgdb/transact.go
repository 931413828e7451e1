package pgdb

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/pause"
)

// conflicts is how often a transaction that lost against another one is repeated.
const conflicts = 50

// BeginWrite begins a transaction that takes locks. Where its client falls silent, because its machine or its network is gone, the server ends it
// after 5 s: else it would wait for hours, and others for the locks.
const BeginWrite = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '5s'`

// Write runs fn in a transaction that begins with the statement begin, and again where it lost against another transaction, up to 50 times with
// pauses of milliseconds. The error is the last one as it came, or the context's cause if it ended in a pause.
func Write(ctx context.Context, pool *pgxpool.Pool, begin string, fn func(tx pgx.Tx) error) error {
	for try := 0; ; try++ {
		err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{BeginQuery: begin}, fn)
		if !Conflict(err) || try == conflicts {
			return err
		}
		if !pause.For(ctx, rand.N(time.Duration(try+1)*time.Millisecond)) { //nolint:gosec // spreads load
			return context.Cause(ctx)
		}
	}
}

// Read runs a query in a transaction that begins with the statement begin, and has its rows read by fn.
func Read(ctx context.Context, pool *pgxpool.Pool, begin, query string, args []any, fn func(rows pgx.Rows) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return fn(rows)
	})
}
