package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// transaction is a handler's. Its handle is the handler's until the gate is closed, and everything else the worker's.
type transaction struct {
	store  *Store
	held   idempotency.Handle
	mark   string
	conn   *pgxpool.Conn // nil once it was given back
	inner  pgx.Tx
	gate   gate
	handle handle

	inDoubt bool  // a commit was sent and not answered
	ended   bool  // result is final
	result  error // nil: committed
}

const (
	// commitTime bounds the wait for the answer to a commit, whose deferred constraints may take a while. Later, the server is told to cancel it,
	// and the store is asked.
	commitTime = 30 * time.Second
	// askTime bounds a question about a commit.
	askTime = 10 * time.Second
	// commitIdle is how long the server waits for the commit once the claim is completed in the transaction. Until then, whoever asks about
	// the claim has to wait.
	commitIdle = 3 * time.Second
	// rollbackTime bounds a rollback. Later, the connection is closed.
	rollbackTime = 3 * time.Second
)

// Handle returns the pgx.Tx that the handler uses.
func (t *transaction) Handle() any { return &t.handle }

// Commit implements [idempotency.Tx].
func (t *transaction) Commit(ctx context.Context, c idempotency.Completion) error {
	switch {
	case t.ended:
		return t.result
	case t.inDoubt:
		return t.ask(ctx)
	}
	if err := t.unfit(t.gate.close()); err != nil {
		_ = t.discard(ctx) // what ends with the connection is rolled back as well
		return t.end(fmt.Errorf("%w: %w", idempotency.ErrRolledBack, err))
	}
	if err := t.complete(ctx, c); err != nil {
		_ = t.discard(ctx)
		if errors.Is(err, idempotency.ErrClaimLost) {
			return t.end(err)
		}
		return t.end(fmt.Errorf("%w: %w", idempotency.ErrRolledBack, err))
	}
	answer, cancel := context.WithTimeout(ctx, commitTime)
	defer cancel()
	t.store.trips.Add(1)
	err := t.inner.Commit(answer)
	t.giveBack()
	switch {
	case err == nil:
		return t.end(nil)
	case refusedCommit(err):
		return t.end(fmt.Errorf("%w: commit: %w", idempotency.ErrRolledBack, err))
	}
	t.inDoubt = true
	return t.ask(ctx)
}

// unfit says why nothing can be committed after what the handler did.
func (t *transaction) unfit(g gateState) error {
	switch {
	case g.busy:
		return errors.New("the handler returned while a statement was running or rows were open: close rows, and wait for goroutines that use the transaction")
	case g.undone:
		return errors.New("the handler rolled it back and returned nil: return an error instead, and leave out `defer tx.Rollback(ctx)`")
	case t.conn.Conn().IsClosed():
		if errors.Is(g.conn, context.Canceled) || errors.Is(g.conn, context.DeadlineExceeded) {
			return fmt.Errorf("a context that ended during a statement has ended the connection, and the handler did not return the error: %w", g.conn)
		}
		return fmt.Errorf("the connection ended: %w: %w", idempotency.ErrUnavailable, orUnknown(g.conn))
	}
	switch t.conn.Conn().PgConn().TxStatus() {
	case 'E':
		return fmt.Errorf("PostgreSQL has aborted the transaction by an error that the handler did not return: %w", orUnknown(g.sql))
	case 'I':
		return errEndedBySQL
	}
	return nil
}

var errEndedBySQL = errors.New("the handler has ended it by SQL (commit or rollback), so that its effects and the claim's completion would be two: " +
	"leave transactions to the worker, and use savepoints within")

func orUnknown(err error) error {
	if err == nil {
		return errors.New("it was not seen by the transaction's own methods")
	}
	return err
}

// lookAtTx asks for the mark, and shortens how long the server waits for a worker that it does not hear of.
var lookAtTx = statement{"caisson_tx_look", fmt.Sprintf("SELECT coalesce(current_setting('caisson.attempt', true), ''), "+
	"set_config('idle_in_transaction_session_timeout', '%d', true)", commitIdle.Milliseconds())}

// complete completes the claim in the transaction, which has to be the one that was begun.
func (t *transaction) complete(ctx context.Context, c idempotency.Completion) error {
	err := t.store.completeIn(ctx, t.inner, c, &lookAtTx, func(row [][]byte) error {
		if string(row[0]) != t.mark {
			return errEndedBySQL
		}
		return nil
	})
	var conflict *pgconn.PgError
	if pgdb.Conflict(err) && errors.As(err, &conflict) {
		return conflict // the store would try again; the handler has to
	}
	return err
}

// refusedCommit says that the server itself answered that it did not commit. The end of the session is no such answer.
func refusedCommit(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return true
	}
	var pg *pgconn.PgError
	return errors.As(err, &pg) && !fatal(pg) && pg.Code[:min(2, len(pg.Code))] != "08"
}

// ask finds out what became of a commit. It waits for the transaction if the server has not ended it yet.
func (t *transaction) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	completed, err := t.store.resolve(ctx, t.held)
	switch {
	case err != nil:
		return fmt.Errorf("the answer to the commit was lost, and the store cannot be asked: %w: %w", idempotency.ErrUnavailable, err)
	case completed:
		return t.end(nil)
	}
	return t.end(fmt.Errorf("%w: the connection ended before the commit: %w", idempotency.ErrRolledBack, idempotency.ErrUnavailable))
}

func (t *transaction) end(result error) error {
	t.ended, t.result = true, result
	return result
}

// Rollback implements [idempotency.Tx].
func (t *transaction) Rollback(ctx context.Context) error {
	if t.ended || t.inDoubt {
		return nil
	}
	t.gate.close()
	err := t.discard(ctx)
	_ = t.end(idempotency.ErrRolledBack)
	return err
}

// discard rolls back. A connection that somebody may be using is taken away from him instead.
func (t *transaction) discard(ctx context.Context) error {
	if g := t.gate.close(); g.busy || g.raw {
		return t.kill(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	err := t.inner.Rollback(ctx)
	t.giveBack()
	if errors.Is(err, pgx.ErrTxClosed) {
		return nil
	}
	return err
}

// giveBack returns the connection to the pool, which closes it unless it is idle and outside of a transaction.
func (t *transaction) giveBack() {
	t.conn.Release()
	t.conn = nil
	<-t.store.joins.slots
}

// kill ends the statement that is running and the connection, without touching what the handler's goroutine may be using.
func (t *transaction) kill(ctx context.Context) error {
	conn := t.conn.Hijack().PgConn()
	t.conn = nil
	defer func() { <-t.store.joins.slots }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	return errors.Join(conn.CancelRequest(ctx), conn.Conn().Close())
}
