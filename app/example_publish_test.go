package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/worker"
)

// Paid is enqueued in the transaction that marks the invoice as paid, with the client of an outbox: box.In(tx).
var Paid = worker.Kind[Invoice]{
	Name: "invoice.paid", Key: func(i Invoice) string { return fmt.Sprintf("invoice-%d-paid", i.Number) },
}

// Invoice is all that the event tells.
type Invoice struct {
	Number int `json:"number"`
}

// tellPaid publishes what the job stands for. It may run again: id and body are the same then, so that each endpoint gets the event once.
func tellPaid(ctx context.Context, i Invoice) error {
	publisher, err := webhook.PublisherFrom(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(i)
	if err != nil {
		return worker.Cancel(err)
	}
	_, err = publisher.Publish(ctx, webhook.Event{ID: worker.JobFrom(ctx).Key, Type: "invoice.paid", Body: body})
	if errors.Is(err, webhook.ErrInvalidEvent) || errors.Is(err, webhook.ErrEventConflict) {
		return worker.Cancel(err) // it never can be: a dead letter at once
	}
	return err // else it is tried again
}

// A handler that publishes webhook events, with the publisher of the program that runs it.
func ExampleMain_publish() {
	app.Main(func(r *worker.Registry) error {
		worker.Handle(r, Paid, tellPaid)
		return nil
	})
}

// A program that only publishes. Its configuration is the workers': here it is given in Go, usually CAISSON_CONFIG names it.
func ExampleOpenPublisher() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "publisher")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	publisher, err := app.OpenPublisher(ctx, app.Config{
		Set: map[string]string{"embedded.path": filepath.Join(dir, "caisson.db"), "webhook.secret_key": endpoints.NewKey()},
	})
	if err != nil {
		panic(err)
	}
	published, err := publisher.Publish(ctx, webhook.Event{ID: "invoice-7-paid", Type: "invoice.paid", Body: []byte(`{"invoice":7}`)})
	fmt.Println(published.ID, published.Endpoints, errors.Join(err, publisher.Close()))
	// Output: invoice-7-paid 0 <nil>
}
