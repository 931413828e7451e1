package main

import (
	"context"
	"fmt"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/queue/outbox"
	"github.com/caisson-go/caisson/worker"
)

// Order is the payload of Place, Receipt that of Mail.
type (
	Order struct {
		ID   string `json:"id"`
		Item string `json:"item"`
	}
	Receipt struct {
		Order string `json:"order"`
	}
)

// Place is keyed by the order: delivered twice, or enqueued twice, it runs once.
var Place = worker.Kind[Order]{
	Name: "order.place", Queue: "shop", Key: func(o Order) string { return o.ID },
	Config: worker.KindConfig{Keyed: new(true)},
}

// Mail tells the customer.
var Mail = worker.Kind[Receipt]{Name: "receipt.mail", Queue: "shop", Key: func(r Receipt) string { return r.Order }}

func main() { app.Main(register) }

func register(r *worker.Registry) error {
	box, err := outbox.New(outbox.Config{})
	if err != nil {
		return err
	}
	worker.Handle(r, Place, func(ctx context.Context, o Order) error { return place(ctx, box, o) })
	worker.Handle(r, Mail, mail)
	return nil
}

// place writes in the transaction that completes the job's claim. It neither commits nor rolls back: the worker does, by what place returns.
func place(ctx context.Context, box *outbox.Box, o Order) error {
	tx, err := postgres.TxFrom(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO shop_orders (id, item) VALUES ($1, $2)`, o.ID, o.Item); err != nil {
		return err
	}
	client, err := worker.NewClient(worker.ClientConfig{Broker: box.In(tx)})
	if err != nil {
		return err
	}
	_, err = client.Enqueue(ctx, Mail.New(Receipt{Order: o.ID}))
	return err
}

func mail(_ context.Context, r Receipt) error {
	fmt.Println("receipt for order", r.Order)
	return nil
}
