package rabbitmq

import (
	"errors"
	"net"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// address is one node of the broker. Only its text goes into logs and errors.
type address struct {
	url  string // with the password
	uri  amqp.URI
	text string // host and port
}

func parseAddress(text string) (address, error) {
	uri, err := amqp.ParseURI(text)
	if err != nil {
		// The error of the parser quotes the URL, password and all.
		return address{}, errors.New("not an AMQP URL (not shown, it may hold a password): it must be like " +
			"amqp://user:password@host:5672/vhost or amqps://..., with reserved characters in user and password percent-encoded")
	}
	return address{url: text, uri: uri, text: net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))}, nil
}

// redact returns err without the password, should somebody have put it into the text.
func (a address) redact(err error) error {
	secret := a.uri.Password
	if err == nil || secret == "" || secret == a.uri.Username {
		return err
	}
	text := err.Error()
	if !strings.Contains(text, secret) && !strings.Contains(text, a.url) {
		return err
	}
	return &redactedError{text: strings.ReplaceAll(strings.ReplaceAll(text, a.url, a.text), secret, "***"), err: err}
}

// redactedError has another text. What kind of error it is can be told all the same.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

// As lets errors.As find the broker's answer, whose own text nobody shows.
func (e *redactedError) As(target any) bool { return errors.As(e.err, target) }

// Is is for the library's sentinels.
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }
