package main

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/worker"
)

// Welcome is the job's payload.
type Welcome struct {
	To string `json:"to"`
}

// SendWelcome is shared by whoever enqueues and whoever handles.
var SendWelcome = worker.Kind[Welcome]{
	Name:   "email.welcome",
	Config: worker.KindConfig{Timeout: 10 * time.Second, MaxAttempts: 4, Destination: "sendgrid", Bulkhead: 8},
}

func main() {
	app.Main(func(r *worker.Registry) error {
		worker.Handle(r, SendWelcome, send)
		return nil
	})
}

func send(ctx context.Context, w Welcome) error {
	fmt.Println("welcome,", w.To) // after an error: again in 30 s, 2 min and 10 min
	return nil
}
