package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rows are results that leave the gate when they have ended.
type rows struct {
	pgx.Rows
	gate *gate
	left bool
}

func watch(inner pgx.Rows, g *gate, err error) pgx.Rows {
	r := &rows{Rows: inner, gate: g}
	if err != nil {
		r.leave(err)
	}
	return r
}

func (r *rows) leave(err error) {
	if !r.left {
		r.left = true
		r.gate.leave(err)
	}
}

// Next leaves when the last row was read, since that closes the rows.
func (r *rows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.leave(r.Err())
	return false
}

// Scan leaves on an error, since that closes the rows.
func (r *rows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil {
		r.leave(r.Err())
	}
	return err
}

func (r *rows) Close() {
	r.Rows.Close()
	r.leave(r.Err())
}

// row leaves when it was scanned.
type row struct {
	pgx.Row
	gate *gate
	left bool
}

func (r *row) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	if !r.left {
		r.left = true
		r.gate.leave(err)
	}
	return err
}

// batchResults leave when they are closed.
type batchResults struct {
	pgx.BatchResults
	gate *gate
	left bool
}

func (b *batchResults) Exec() (pgconn.CommandTag, error) {
	tag, err := b.BatchResults.Exec()
	b.saw(err)
	return tag, err
}

func (b *batchResults) Close() error {
	err := b.BatchResults.Close()
	if !b.left {
		b.left = true
		b.gate.leave(err)
	}
	return err
}

// saw notes an error of one statement of the batch.
func (b *batchResults) saw(err error) {
	b.gate.mu.Lock()
	defer b.gate.mu.Unlock()
	b.gate.note(err)
}
