package sqlitefile

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Errors of this package, usually wrapped. Match them with errors.Is.
var (
	// ErrUnavailable means that the file cannot be used for now: the disk is full, an I/O error, or another process held the
	// file for longer than [Config.BusyTimeout]. The call may be repeated.
	ErrUnavailable = errors.New("sqlite file unavailable")
	// ErrFull means that the disk, or [Config.MaxSize], is exhausted. It comes with ErrUnavailable.
	ErrFull = errors.New("disk full or size limit reached")
	// ErrClosed means that the file was closed by this process.
	ErrClosed = errors.New("sqlite file closed")
	// ErrNewer means that a newer version of the program wrote the file.
	ErrNewer = errors.New("sqlite file written by a newer version")
)

// Error is an error of SQLite. It matches [ErrUnavailable] if it is temporary, and [ErrFull] if there is no space.
type Error struct {
	// Op is what was being done.
	Op string
	// Path is the file.
	Path string
	// Code is SQLite's extended result code.
	Code int
	Err  error
}

func (e *Error) Error() string {
	hint := ""
	switch e.Code & 0xff {
	case sqlite3.SQLITE_FULL:
		hint = " (free disk space or raise the size limit)"
	case sqlite3.SQLITE_CANTOPEN:
		hint = " (does the directory exist, and may this process write there?)"
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		hint = " (not a sound database: move it away or restore a backup)"
	case sqlite3.SQLITE_READONLY:
		hint = " (this process may not write to the file or its directory)"
	}
	return fmt.Sprintf("%s %s: %v%s", e.Op, e.Path, e.Err, hint)
}

// Unwrap returns the driver's error.
func (e *Error) Unwrap() error { return e.Err }

// Is matches [ErrUnavailable] and [ErrFull] by the result code.
func (e *Error) Is(target error) bool {
	switch e.Code & 0xff {
	case sqlite3.SQLITE_FULL:
		return target == ErrUnavailable || target == ErrFull
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_PROTOCOL:
		return target == ErrUnavailable
	}
	return false
}

// wrap gives a driver error its place and meaning. Other errors, nil among them, pass through.
func wrap(op, path string, err error) error {
	if err == nil {
		return nil // before anything escapes to the heap
	}
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return err
	}
	return &Error{Op: op, Path: path, Code: se.Code(), Err: err}
}

// busy says that another connection holds the lock that was asked for.
func busy(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code&0xff == sqlite3.SQLITE_BUSY || e.Code&0xff == sqlite3.SQLITE_LOCKED)
}
