package pgdb

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnavailable marks errors after which the same call may be repeated: the database is away, starting, failing over, full, read-only or
// overloaded, or the transaction lost a conflict.
var ErrUnavailable = errors.New("postgres unavailable")

// Unavailable reports whether err passes: the same call may succeed later. The end of a caller's context is not of this kind; whoever has a
// context of his own for the call asks that first.
func Unavailable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return passing(pg.Code)
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.Is(err, ErrUnavailable) || errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded) ||
		pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed")
}

// Unreached reports whether err passes, or comes from making a connection: also of a wrong password or a missing database, as while an operator
// changes them, it is known that nothing was done. At the start of a program that is a mistake; later on work waits until it is mended.
func Unreached(err error) bool {
	var connect *pgconn.ConnectError
	return Unavailable(err) || errors.As(err, &connect) && !errors.Is(err, context.Canceled)
}

// Conflict reports whether err says that the transaction lost against another one and may be repeated at once.
func Conflict(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// readOnly is the SQLSTATE of a write on a standby, as it comes after a failover.
const readOnly = "25006"

// passing tells SQLSTATE codes (PostgreSQL's appendix A) of states from those of mistakes.
func passing(code string) bool {
	switch code {
	case readOnly,
		"25P03", // idle in transaction for too long
		"55P03", // lock not available
		"57014": // statement timeout
		return true
	}
	switch code[:min(2, len(code))] {
	case "08", // connection
		"40", // serialization failure, deadlock
		"53", // out of connections, memory or disk
		"57", // shutdown, crash, starting
		"58": // I/O
		return true
	}
	return false
}
