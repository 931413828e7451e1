package sqlitefile

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
)

// uninterrupted is the context of every statement: the writer must know how each one ended.
var uninterrupted = context.Background()

// conn is one SQLite connection with its prepared statements. It speaks to the driver without database/sql: a
// connection here has exactly one user at a time, so that the pool's locking and reflection would buy nothing.
// It is not safe for concurrent use.
type conn struct {
	path  string
	raw   driver.Conn
	stmts map[string]*stmt
	open  []*Rows // cursors not closed yet
	args  []driver.NamedValue
}

// stmt is a prepared statement and the one cursor that it can have.
type stmt struct {
	raw  driver.Stmt
	exec driver.StmtExecContext
	run  driver.StmtQueryContext
	rows Rows
	busy bool
}

// dial opens one connection. SQLite's own waiting for locks is off: see (*database).begin.
func dial(path string) (*conn, error) {
	name := memoryPath
	if !inMemory(path) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", path, err)
		}
		name = (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()
	}
	raw, err := engine.Open(name)
	if err != nil {
		return nil, wrap("open", path, err)
	}
	c := &conn{path: path, raw: raw, stmts: make(map[string]*stmt)}
	if err := c.script("PRAGMA busy_timeout=0"); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// script runs SQL that is not worth a prepared statement. It may hold several statements.
//
//nolint:contextcheck // see uninterrupted
func (c *conn) script(query string) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(uninterrupted, query, nil)
	return wrap("execute", c.path, err)
}

// prepared returns the statement for query, from the cache if it is there and not in use by an open cursor.
func (c *conn) prepared(query string) (*stmt, error) {
	s, ok := c.stmts[query]
	if ok && !s.busy {
		return s, nil
	}
	raw, err := c.raw.Prepare(query)
	if err != nil {
		return nil, wrap("prepare", c.path, err)
	}
	fresh := &stmt{raw: raw}
	if fresh.exec, ok = raw.(driver.StmtExecContext); !ok {
		return nil, fmt.Errorf("sqlite driver statement %T cannot execute", raw)
	}
	if fresh.run, ok = raw.(driver.StmtQueryContext); !ok {
		return nil, fmt.Errorf("sqlite driver statement %T cannot query", raw)
	}
	if s == nil {
		c.stmts[query] = fresh
	} else {
		fresh.rows.once = true
	}
	return fresh, nil
}

// execute runs one statement to its end.
//
//nolint:contextcheck // see uninterrupted
func (c *conn) execute(query string, args []any) (Result, error) {
	s, err := c.prepared(query)
	if err != nil {
		return Result{}, err
	}
	if s.rows.once {
		defer s.raw.Close()
	}
	named, err := c.bind(args)
	if err != nil {
		return Result{}, err
	}
	res, err := s.exec.ExecContext(uninterrupted, named)
	clear(named)
	if err != nil {
		return Result{}, wrap("execute", c.path, err)
	}
	changed, err := res.RowsAffected()
	if err != nil {
		return Result{}, wrap("execute", c.path, err)
	}
	id, err := res.LastInsertId()
	return Result{Changed: changed, LastID: id}, wrap("execute", c.path, err)
}

// query starts one statement that returns rows.
//
//nolint:contextcheck // see uninterrupted
func (c *conn) query(query string, args []any) (*Rows, error) {
	s, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	named, err := c.bind(args)
	if err != nil {
		return nil, err
	}
	raw, err := s.run.QueryContext(uninterrupted, named)
	clear(named)
	if err != nil {
		return nil, wrap("query", c.path, err)
	}
	s.busy = true
	width := len(raw.Columns())
	dest := s.rows.dest
	if len(dest) != width {
		dest = make([]driver.Value, width)
	}
	s.rows = Rows{conn: c, stmt: s, raw: raw, dest: dest, once: s.rows.once}
	c.open = append(c.open, &s.rows)
	return &s.rows, nil
}

// closeRows closes the cursors that were left open.
func (c *conn) closeRows() error {
	var errs []error
	for len(c.open) > 0 {
		errs = append(errs, c.open[len(c.open)-1].Close())
	}
	return errors.Join(errs...)
}

// bind converts args for the driver. The result is valid until the next call.
func (c *conn) bind(args []any) ([]driver.NamedValue, error) {
	c.args = c.args[:0]
	for i, a := range args {
		v, err := toValue(a)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args, nil
}

// toValue spares the common types the reflection of the default converter.
func toValue(a any) (driver.Value, error) {
	switch v := a.(type) {
	case nil, int64, string, []byte, bool, float64:
		return v, nil
	case int:
		return int64(v), nil
	}
	return driver.DefaultParameterConverter.ConvertValue(a)
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.raw.Close())
	}
	c.stmts = nil
	errs = append(errs, c.raw.Close())
	return wrap("close", c.path, errors.Join(errs...))
}
