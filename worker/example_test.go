package worker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// Invoice is the payload of a kind of job.
type Invoice struct {
	Number string `json:"number"`
	To     string `json:"to"`
}

// SendInvoice is shared by those who enqueue and those who handle. Its key makes an invoice that is enqueued twice go out once.
var SendInvoice = worker.Kind[Invoice]{
	Name:   "invoice.send",
	Key:    func(i Invoice) string { return "invoice " + i.Number },
	Config: worker.KindConfig{Timeout: 10 * time.Second, Destination: "mail"},
}

// A worker of one's own, without package app: a broker, the stores beside it, a registry, and Run until the context ends.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	broker, err := embedded.Open(ctx, embedded.Config{Path: ":memory:"}) // or the path of a file
	if err != nil {
		panic(err)
	}
	defer func() { _ = broker.Close() }()
	claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: broker.Path()}) // in the queue's own file
	if err != nil {
		panic(err)
	}
	defer func() { _ = claims.Close() }()
	letters, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: broker.Path()})
	if err != nil {
		panic(err)
	}
	defer func() { _ = letters.Close() }()

	registry := worker.NewRegistry()
	worker.Handle(registry, SendInvoice, func(ctx context.Context, i Invoice) error {
		fmt.Printf("attempt %d: invoice %s to %s\n", worker.JobFrom(ctx).Attempt, i.Number, i.To)
		stop()
		return nil
	})
	w, err := worker.New(worker.Config{Broker: broker, Registry: registry, Store: claims, DeadLetters: letters})
	if err != nil {
		panic(err)
	}

	client, err := worker.NewClient(worker.ClientConfig{Broker: broker})
	if err != nil {
		panic(err)
	}
	if err := broker.CreateQueue(ctx, worker.DefaultQueue); err != nil {
		panic(err)
	}
	if _, err := client.Enqueue(ctx, SendInvoice.New(Invoice{Number: "2026-17", To: "ada@example.com"})); err != nil {
		panic(err)
	}
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
	// Output: attempt 1: invoice 2026-17 to ada@example.com
}

// What a handler may answer.
func ExampleHandle() {
	registry := worker.NewRegistry()
	worker.Handle(registry, SendInvoice, func(ctx context.Context, i Invoice) error {
		switch err := mail(ctx, i); {
		case errors.Is(err, errBusy):
			return worker.RetryAfter(time.Minute, err) // no sooner; the breaker hears nothing
		case errors.Is(err, errNoSuchAddress):
			return worker.Cancel(err) // never again: to the dead letters
		default:
			return err // nil is success; anything else is tried again, and counts against the destination "mail"
		}
	})
	fmt.Println(registry.Kinds())
	// Output: [invoice.send]
}

var (
	errBusy          = errors.New("busy")
	errNoSuchAddress = errors.New("no such address")
)

func mail(context.Context, Invoice) error { return nil }

// Middleware sees each attempt, after all guards.
func ExampleRegistry_Use() {
	registry := worker.NewRegistry()
	registry.Use(func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, job *worker.Job) error {
			start := time.Now()
			err := next(ctx, job)
			worker.Logger(ctx).Info("handled", "took", time.Since(start), "error", err)
			return err
		}
	})
	// Output:
}
