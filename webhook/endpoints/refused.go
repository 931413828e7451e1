package endpoints

import "errors"

// ErrInvalid means that an endpoint, or what a change would make of it, is not valid. The error says what is wrong with it.
var ErrInvalid = errors.New("webhook endpoint is not valid")

// refused is an error that is also [ErrInvalid], which its text need not say.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

func (refused) Is(target error) bool { return target == ErrInvalid }

func refusal(err error) error {
	if err == nil {
		return nil
	}
	return refused{err}
}
