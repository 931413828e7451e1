package recipes

import (
	"context"

	"github.com/caisson-go/caisson/worker"
)

// Order is charged, and then shipped.
type Order struct {
	ID string `json:"id"`
}

// The two kinds: the order's number is the key of both.
var (
	Charge = worker.Kind[Order]{Name: "order.charge", Key: func(o Order) string { return o.ID }}
	Ship   = worker.Kind[Order]{Name: "order.ship", Key: func(o Order) string { return o.ID }}
)

// ChargeThenShip enqueues the second step as the last thing that the first one does.
func ChargeThenShip(client *worker.Client, pay func(context.Context, Order) error) func(context.Context, Order) error {
	return func(ctx context.Context, o Order) error {
		if err := pay(ctx, o); err != nil {
			return err
		}
		_, err := client.Enqueue(ctx, Ship.New(o))
		return err
	}
}
