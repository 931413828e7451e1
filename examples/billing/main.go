package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// Invoice is the job's payload.
type Invoice struct {
	Number   int      `json:"number"`
	Customer Customer `json:"customer"`
}

// Customer gets an invoice.
type Customer struct {
	Name string `json:"name"`
	Plan string `json:"plan"`
}

// soon is the delay between two attempts: short, since this is to be watched.
var soon, _ = schedule.Constant(100*time.Millisecond, schedule.JitterNone)

// Send is the job that sends an invoice by mail. The invoice's number is its idempotency key.
var Send = worker.Kind[Invoice]{
	Name: "invoice.send", Key: func(i Invoice) string { return fmt.Sprintf("invoice-%d", i.Number) },
	Config: worker.KindConfig{MaxAttempts: 2, Backoff: soon, Destination: "mailserver"},
}

func main() { app.Main(register) }

func register(r *worker.Registry) error {
	worker.Handle(r, Send, send)
	return nil
}

func send(ctx context.Context, i Invoice) error {
	for exists("mailserver.slow") {
		select {
		case <-ctx.Done():
			return fmt.Errorf("smtp mailserver:25: message %d: %w", i.Number, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
	if exists("mailserver.down") {
		return fmt.Errorf("smtp mailserver:25: message %d: 451 try again later", i.Number)
	}
	fmt.Printf("invoice %d sent to %s\n", i.Number, i.Customer.Name)
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
