package cli

import (
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/migrations"
)

// Code is a program's exit code.
type Code int

// The exit codes.
const (
	// OK: everything was done.
	OK Code = 0
	// Failure: it went wrong while running.
	Failure Code = 1
	// Usage: the command line or the configuration was refused; nothing was begun.
	Usage Code = 2
	// Abandoned: a worker stopped, but handlers that ignored the stop were left behind. Their jobs run again.
	Abandoned Code = 3
	// Partial: some of several were done, and the output says which were not.
	Partial Code = 4
	// Tables: those of the store are older or newer than the program; nothing was begun.
	Tables Code = 5
	// Interrupted: a signal ended it before it was done.
	Interrupted Code = 130
)

// ExitCodes explains the codes; it stands in every --help.
const ExitCodes = `Exit codes:
  0    done
  1    failed while running
  2    command line or configuration refused; nothing was begun
  3    worker stopped, but handlers that ignored the stop were abandoned
  4    partly done; the output says what was not
  5    tables of the store are older or newer than this program; nothing was begun: see worker migrate
  130  interrupted by a signal (a worker that stops gracefully exits 0)`

// Error is an error that decides the exit code.
type Error struct {
	Code Code
	// Err is why. Nil means that everything to be said was said.
	Err error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Fail returns err with the code that it ends the program with. A nil err ends it in silence.
func Fail(code Code, err error) error { return &Error{Code: code, Err: err} }

// Refuse returns an error of [Usage].
func Refuse(format string, args ...any) error { return Fail(Usage, fmt.Errorf(format, args...)) }

// codeOf returns the exit code for err.
func codeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &e):
		return e.Code
	case migrations.Refuses(err):
		return Tables
	}
	return Failure
}
