package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// gate stands between a handler and the connection of its transaction. It knows what is under way there, and closes when the attempt is over, so
// that the connection is never used by two.
type gate struct {
	mu     sync.Mutex
	closed bool
	busy   int   // statements and result sets that have not ended
	raw    bool  // the connection itself was handed out: what happens there is unknown
	undone bool  // the handler has rolled back
	sql    error // the newest error by which PostgreSQL may have aborted the transaction
	conn   error // the newest error that came from the connection, or from a context that ended it
}

// errOver is an [pgx.ErrTxClosed], which code that runs beside the handler may know.
var errOver = fmt.Errorf("the handler's attempt is over, and its transaction with it: %w", pgx.ErrTxClosed)

// enter announces a statement. Whoever got nil calls leave when the statement and its results have ended.
func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errOver
	}
	g.busy++
	return nil
}

func (g *gate) leave(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.note(err)
}

// note keeps err if it may be the reason why the transaction cannot be committed.
func (g *gate) note(err error) {
	var pg *pgconn.PgError
	switch {
	case err == nil:
	case errors.As(err, &pg) && pg.Code == inFailedTransaction:
		// It only follows from an earlier one.
	case pg != nil && !fatal(pg):
		g.sql = err
	case pgdb.Unavailable(err) || errors.Is(err, context.Canceled):
		g.conn = err
	}
}

const inFailedTransaction = "25P02"

// fatal says that the server ended the session with this error.
func fatal(pg *pgconn.PgError) bool {
	severity := pg.SeverityUnlocalized
	if severity == "" {
		severity = pg.Severity
	}
	return severity == "FATAL" || severity == "PANIC"
}

func (g *gate) handOut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.raw = true
}

func (g *gate) undo() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.undone = true
}

// gateState is what a gate knew when it was closed.
type gateState struct {
	busy, raw, undone bool
	sql, conn         error
}

func (g *gate) close() gateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return gateState{busy: g.busy > 0, raw: g.raw, undone: g.undone, sql: g.sql, conn: g.conn}
}
