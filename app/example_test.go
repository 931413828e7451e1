package app_test

import (
	"context"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/worker"
)

// Mail is the payload of the kind email.send.
type Mail struct {
	To, Subject string
}

// SendMail is the kind: shared by the code that enqueues and the code that handles.
var SendMail = worker.Kind[Mail]{Name: "email.send"}

// sendMail would talk to a mail server.
func sendMail(ctx context.Context, m Mail) error {
	worker.Logger(ctx).InfoContext(ctx, "sent", "to", m.To)
	return nil
}

// A program of your own: its main is one call. Built as ./mailer it takes every command of the worker, for example
//
//	mailer run
//	mailer enqueue email.send '{"To":"ann@example.com","Subject":"Hello"}'
func ExampleMain() {
	app.Main(func(r *worker.Registry) error {
		worker.Handle(r, SendMail, sendMail)
		return nil
	})
}
