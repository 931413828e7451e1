package sqlitefile

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Tx is a transaction as [File.Write] and [File.Read] lend it. It is valid only until fn returns and only in fn's goroutine.
// Statements are prepared once per connection and found again by their text: use constant texts and arguments.
//
// Arguments may be integers, strings, byte slices, booleans, floats, nil and types that [driver.DefaultParameterConverter]
// converts. A nil byte slice is NULL, an empty one is an empty blob. Times are the caller's to convert.
type Tx struct {
	conn *conn
	// broken is the first error that may have ended the transaction behind fn's back, or that leaves it in doubt.
	broken error
}

// Result tells what an Exec did.
type Result struct {
	// Changed is the number of rows inserted, updated or deleted.
	Changed int64
	// LastID is the rowid of the last insert on this connection.
	LastID int64
}

// Exec runs one statement.
func (tx *Tx) Exec(query string, args ...any) (Result, error) {
	res, err := tx.conn.execute(query, args)
	return res, tx.note(err)
}

// Query runs one statement that returns rows. Rows left open are closed when fn returns.
func (tx *Tx) Query(query string, args ...any) (*Rows, error) {
	rows, err := tx.conn.query(query, args)
	return rows, tx.note(err)
}

// QueryRow runs one statement and scans its first row into dest. It returns [sql.ErrNoRows] if there is none.
func (tx *Tx) QueryRow(query string, args []any, dest ...any) error {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := tx.note(rows.Err()); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := rows.Scan(dest...); err != nil {
		return err
	}
	return tx.note(rows.Close())
}

// note remembers an error after which the transaction cannot be trusted.
func (tx *Tx) note(err error) error {
	if err != nil && tx.broken == nil && errors.Is(err, ErrUnavailable) {
		tx.broken = err
	}
	return err
}

// Rows is a cursor. The usual loop is
//
//	for rows.Next() { err = rows.Scan(&a, &b) }
//	err = rows.Err(); rows.Close()
//
// A Rows must not be used after Close: the next query with the same text takes it over.
type Rows struct {
	conn *conn
	stmt *stmt
	raw  driver.Rows
	dest []driver.Value
	err  error
	once bool
}

// Next moves to the next row and reports whether there is one.
func (r *Rows) Next() bool {
	if r.err != nil || r.raw == nil {
		return false
	}
	err := r.raw.Next(r.dest)
	if err == nil {
		return true
	}
	if !errors.Is(err, io.EOF) {
		r.err = wrap("read rows", r.conn.path, err)
	}
	return false
}

// Err returns the error that ended Next, if any.
func (r *Rows) Err() error { return r.err }

// Close frees the cursor. Closing twice is a no-op.
func (r *Rows) Close() error {
	if r.raw == nil {
		return nil
	}
	err := r.raw.Close()
	r.raw = nil
	clear(r.dest)
	r.stmt.busy = false
	r.conn.open = slices.DeleteFunc(r.conn.open, func(o *Rows) bool { return o == r })
	if r.once {
		err = errors.Join(err, r.stmt.raw.Close())
	}
	return wrap("close rows", r.conn.path, err)
}

// Scan copies the current row. Destinations are pointers to int64, int, bool, float64, string, []byte, any, or a [sql.Scanner]
// such as [sql.NullInt64] where NULL may come. Byte slices are the caller's to keep. NULL into a []byte gives nil.
func (r *Rows) Scan(dest ...any) error {
	if len(dest) != len(r.dest) {
		return fmt.Errorf("scan: %d destinations for %d columns", len(dest), len(r.dest))
	}
	for i, d := range dest {
		if err := assign(d, r.dest[i]); err != nil {
			return fmt.Errorf("scan column %d (%s): %w", i, r.raw.Columns()[i], err)
		}
	}
	return nil
}

func assign(dest any, v driver.Value) error {
	ok := false
	switch d := dest.(type) {
	case *int64:
		*d, ok = v.(int64)
	case *int:
		var n int64
		n, ok = v.(int64)
		*d = int(n)
	case *bool:
		var n int64
		n, ok = v.(int64)
		*d = n != 0
	case *float64:
		*d, ok = v.(float64)
	case *string:
		*d, ok = v.(string)
	case *[]byte:
		*d, ok = v.([]byte)
		ok = ok || v == nil
	case *any:
		*d, ok = v, true
	case sql.Scanner:
		return d.Scan(v)
	}
	if !ok {
		return fmt.Errorf("cannot store %T in %T", v, dest)
	}
	return nil
}
