package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handle is the pgx.Tx that a handler gets.
type handle struct{ gated }

var errCommit = errors.New("a handler does not commit its transaction: the worker does, together with the claim, once the handler has returned nil; " +
	"for a part of it that can be undone, use Begin and commit that")

// Commit is refused.
func (h *handle) Commit(context.Context) error { return errCommit }

// Rollback undoes everything. The attempt fails if the handler then returns nil.
func (h *handle) Rollback(ctx context.Context) error {
	if err := h.gate.enter(); err != nil {
		return err
	}
	h.gate.undo()
	err := h.inner.Rollback(ctx)
	h.gate.leave(err)
	return err
}

// savepoint is what Begin makes of a handler's transaction.
type savepoint struct{ gated }

// Commit releases the savepoint.
func (s *savepoint) Commit(ctx context.Context) error { return s.end(ctx, s.inner.Commit) }

// Rollback goes back to the savepoint.
func (s *savepoint) Rollback(ctx context.Context) error { return s.end(ctx, s.inner.Rollback) }

func (s *savepoint) end(ctx context.Context, how func(context.Context) error) error {
	if err := s.gate.enter(); err != nil {
		return err
	}
	err := how(ctx)
	s.gate.leave(err)
	return err
}

// gated is what handle and savepoint share. Each statement passes the gate.
type gated struct {
	inner pgx.Tx
	gate  *gate
}

// Begin makes a savepoint.
func (s *gated) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := s.gate.enter(); err != nil {
		return nil, err
	}
	inner, err := s.inner.Begin(ctx)
	s.gate.leave(err)
	if err != nil {
		return nil, err
	}
	return &savepoint{gated{inner, s.gate}}, nil
}

func (s *gated) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := s.gate.enter(); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := s.inner.Exec(ctx, sql, args...)
	s.gate.leave(err)
	return tag, err
}

// Prepare prepares a statement, which stays with the connection: its name should belong to its text alone.
func (s *gated) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := s.gate.enter(); err != nil {
		return nil, err
	}
	description, err := s.inner.Prepare(ctx, name, sql)
	s.gate.leave(err)
	return description, err
}

func (s *gated) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	if err := s.gate.enter(); err != nil {
		return 0, err
	}
	n, err := s.inner.CopyFrom(ctx, table, columns, src)
	s.gate.leave(err)
	return n, err
}

func (s *gated) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := s.gate.enter(); err != nil {
		return turnedAway(err).Query()
	}
	inner, err := s.inner.Query(ctx, sql, args...)
	return watch(inner, s.gate, err), err
}

func (s *gated) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := s.gate.enter(); err != nil {
		return turnedAway(err).QueryRow()
	}
	return &row{s.inner.QueryRow(ctx, sql, args...), s.gate, false}
}

func (s *gated) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := s.gate.enter(); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return &batchResults{BatchResults: s.inner.SendBatch(ctx, b), gate: s.gate}
}

// LargeObjects works on the connection itself.
func (s *gated) LargeObjects() pgx.LargeObjects {
	s.gate.handOut()
	return s.inner.LargeObjects()
}

// Conn returns the connection itself, for its type map and the like. A connection that was handed out is not used again unless the attempt succeeds.
func (s *gated) Conn() *pgx.Conn {
	s.gate.handOut()
	return s.inner.Conn()
}

func turnedAway(err error) pgx.BatchResults { return pgx.FailedBatchResults(&pgx.Batch{}, err) }
