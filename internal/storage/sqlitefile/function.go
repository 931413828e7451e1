package sqlitefile

import (
	"database/sql/driver"

	"modernc.org/sqlite"
)

// engine opens all connections, so that they know the functions of [RegisterFunction].
var engine = &sqlite.Driver{}

// RegisterFunction lets statements call fn, which must give the same answer for the same arguments and must not keep them. It is for the
// time before any file is opened, such as a package's init, and panics for a name that is taken.
func RegisterFunction(name string, nargs int32, fn func(args []driver.Value) (driver.Value, error)) {
	err := engine.RegisterFunction(name, &sqlite.FunctionImpl{
		NArgs: nargs, Deterministic: true, VolatileArgs: true,
		Scalar: func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) { return fn(args) },
	})
	if err != nil {
		panic(err)
	}
}
