package sqs

import "errors"

// callFailed carries the fault of an entry's error along.
type callFailed struct {
	fault fault
	err   error
}

func (e *callFailed) Error() string { return e.err.Error() }

func (e *callFailed) Unwrap() error { return e.err }

func asCallFailed(err error) (*callFailed, bool) {
	var e *callFailed
	return e, errors.As(err, &e)
}

func (e *entry) faultIf(done bool) fault {
	if !done {
		return cancelled
	}
	return e.fault
}
