package outbox

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// turnTables take turns in holding fresh jobs.
var turnTables = [2]string{"outbox_0", "outbox_1"}

// turnSize is from how many bytes on a table gives its turn to the other.
const turnSize = 8 << 20

// tidy truncates the table whose turn it is not once it is empty, and then gives it the turn if the other has grown. No clock and no
// snapshot decides: the truncating transaction has the table for itself and looks again, so a writer that has not committed, and one that
// read the turn long ago, are waited for or come after.
func (r *Relay) tidy(ctx context.Context) error {
	var turn int
	var size [2]int64
	err := r.cfg.Pool.QueryRow(ctx, r.sql.sizes, r.sql.tables[0], r.sql.tables[1]).Scan(&turn, &size[0], &size[1])
	if err != nil {
		return err
	}
	other := 1 - turn
	if size[other] > 0 {
		done, err := r.truncate(ctx, other)
		if err != nil || !done {
			return err
		}
	}
	if size[turn] >= r.turnSize {
		_, err = r.cfg.Pool.Exec(ctx, r.sql.turn, other)
	}
	return err
}

// lockTimeout is how long relays may be kept from reading, for the sake of a table that some transaction is still in.
const lockTimeout = "100ms"

// truncate reports whether it has truncated the table. Relays that read meanwhile wait for it, writers of the other table do not.
func (r *Relay) truncate(ctx context.Context, table int) (done bool, err error) {
	// Without the lock first: a table that is not empty is not worth stopping its readers for.
	if err := r.cfg.Pool.QueryRow(ctx, r.sql.empty[table]).Scan(&done); err != nil || !done {
		return false, err
	}
	options := pgx.TxOptions{BeginQuery: pgdb.BeginWrite}
	err = pgx.BeginTxFunc(ctx, r.cfg.Pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1::text, true)`, lockTimeout); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, r.sql.lock[table]); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, r.sql.empty[table]).Scan(&done); err != nil || !done {
			return err
		}
		_, err := tx.Exec(ctx, r.sql.truncate[table])
		return err
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" { // in use: at the next time
		return false, nil
	}
	return done && err == nil, err
}
