package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// statement is one SQL statement. It is prepared under its name, or sent whole where a pooler forbids that.
type statement struct{ name, sql string }

// roundTrip collects statements that are sent together: one round trip.
type roundTrip struct {
	store *Store
	conn  *pgx.Conn
	batch pgconn.Batch
	rows  []func(row [][]byte) error
}

func (s *Store) roundTrip(conn *pgx.Conn) *roundTrip { return &roundTrip{store: s, conn: conn} }

var binaryFormat = []int16{1}

// add appends a statement. read is called for each row of its result, whose bytes are valid until it returns.
func (t *roundTrip) add(ctx context.Context, st *statement, v values, read func(row [][]byte) error) error {
	formats := binaryFormat
	if len(v) == 0 {
		formats = nil
	}
	if t.store.prepares {
		if err := t.prepare(ctx, st); err != nil {
			return err
		}
		t.batch.ExecPrepared(st.name, v, formats, binaryFormat)
	} else {
		t.batch.ExecParams(st.sql, v, nil, formats, binaryFormat)
	}
	t.rows = append(t.rows, read)
	return nil
}

func (t *roundTrip) prepare(ctx context.Context, st *statement) error {
	_, err := t.conn.Prepare(ctx, st.name, st.sql) // asks once in a connection's life
	return err
}

// begin starts a transaction in which every statement sees what was committed before it.
func (t *roundTrip) begin(ctx context.Context) error { return t.add(ctx, &t.store.sql.begin, nil, nil) }

// lock keeps the newest generation until the end of the transaction.
func (t *roundTrip) lock(ctx context.Context) error {
	return errors.Join(t.add(ctx, &t.store.sql.guard, nil, nil), t.add(ctx, &t.store.sql.lock, nil, nil))
}

func (t *roundTrip) commit(ctx context.Context) error {
	return t.add(ctx, &t.store.sql.commit, nil, nil)
}

// send sends what was added and reads all results.
func (t *roundTrip) send(ctx context.Context) error {
	t.store.trips.Add(1)
	results := t.conn.PgConn().ExecBatch(ctx, &t.batch)
	var failed error
	for k := 0; failed == nil && results.NextResult(); k++ {
		rr := results.ResultReader()
		for failed == nil && rr.NextRow() {
			if read := t.rows[k]; read != nil {
				failed = read(rr.Values())
			}
		}
		_, err := rr.Close()
		failed = errors.Join(failed, err)
	}
	if err := results.Close(); failed == nil {
		failed = err
	}
	return failed
}

// withConn runs do on a connection that is outside of a transaction before and after.
func (s *Store) withConn(ctx context.Context, do func(conn *pgx.Conn) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release() // closes a connection that is inside a transaction still
	err = do(c.Conn())
	if err != nil && !c.Conn().IsClosed() && c.Conn().PgConn().TxStatus() != 'I' {
		s.trips.Add(1)
		_, rollbackErr := c.Conn().Exec(ctx, "ROLLBACK", pgx.QueryExecModeSimpleProtocol)
		err = errors.Join(err, rollbackErr)
	}
	return err
}

// tries is how often work is begun anew after it lost a conflict.
const tries = 12

// repeat runs do, again where it lost a conflict or never reached the server. again says that an earlier try may have been committed
// without our knowing: only where do allows for that it is tried again after a cut connection.
func (s *Store) repeat(ctx context.Context, do func(conn *pgx.Conn, again bool) error) error {
	again := false
	for n := 1; ; n++ {
		err := s.withConn(ctx, func(conn *pgx.Conn) error { return do(conn, again) })
		if err == nil || ctx.Err() != nil {
			return err
		}
		switch {
		case conflict(err):
		case pgconn.SafeToRetry(err) && n < 3:
		case pgdb.Unavailable(err) && !answered(err) && n < 3: // the connection was cut, perhaps after the commit
			again = true
		default:
			return err
		}
		if n == tries {
			return unavailable(err)
		}
		pause.For(ctx, time.Duration(n)*rand.N(time.Millisecond)) //nolint:gosec // jitter
	}
}

// conflict says that the transaction was undone because of another one. A row that is already there is of this kind: nobody had it when
// we looked.
func conflict(err error) bool {
	var pg *pgconn.PgError
	return pgdb.Conflict(err) || errors.As(err, &pg) && pg.Code == "23505"
}

// answered says that the server refused: nothing was committed. The end of the session is no such answer.
func answered(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && !fatal(pg)
}
