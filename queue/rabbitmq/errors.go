package rabbitmq

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// unavailable wraps err as temporary.
func unavailable(what string, err error) error {
	if err == nil || errors.Is(err, queue.ErrUnavailable) || errors.Is(err, queue.ErrClosed) {
		if err == nil {
			return fmt.Errorf("%s: %w", what, queue.ErrUnavailable)
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w: %w", what, queue.ErrUnavailable, err)
}

// code returns the reply code of an error of the protocol, or 0. Errors that the library made up itself have none.
func code(err error) int {
	var e *amqp.Error
	if errors.As(err, &e) && e.Server {
		return e.Code
	}
	return 0
}

// missing tells whether err says that a queue does not exist. A queue whose node is down has the same code and another text.
func missing(err error) bool {
	return code(err) == amqp.NotFound && strings.Contains(err.Error(), "no queue ")
}

// permanent tells what no waiting can mend: credentials, virtual host, permissions, arguments that differ.
func permanent(err error) bool {
	var differs *DifferentError
	if errors.As(err, &differs) || errors.Is(err, amqp.ErrCredentials) || errors.Is(err, amqp.ErrVhost) || errors.Is(err, amqp.ErrSASL) {
		return true
	}
	switch code(err) {
	case amqp.AccessRefused:
		return true
	case amqp.NotAllowed:
		return !strings.Contains(err.Error(), "connection limit") // others may leave
	}
	return false
}

// DifferentError tells that a queue or exchange exists with other properties than the configuration asks for. Waiting does not mend it.
type DifferentError struct {
	// Name of the queue or exchange, as the broker knows it.
	Name string
	// Reason is what the broker says differs.
	Reason string
}

func (e *DifferentError) Error() string {
	return fmt.Sprintf("%q exists with other properties: %s: the arguments of a queue never change, so either configure the values that it "+
		"has, use another prefix, or move its messages elsewhere and delete it", e.Name, e.Reason)
}

// declared explains the error of a declaration.
func declared(name string, err error) error {
	if code(err) == amqp.PreconditionFailed {
		var e *amqp.Error
		errors.As(err, &e)
		return &DifferentError{Name: name, Reason: e.Reason}
	}
	return err
}
