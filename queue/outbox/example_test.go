package outbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/queue/outbox"
	"github.com/caisson-go/caisson/worker"
)

type welcome struct{ Customer string }

var welcomeMail = worker.Kind[welcome]{Name: "mail.welcome", Queue: "mail"}

// An order and the job that welcomes its customer are committed together, or not at all.
func Example() {
	ctx := context.Background()
	pool, schema, drop := openDatabase(ctx)
	defer drop()
	box, err := outbox.New(outbox.Config{Schema: schema})
	if err != nil {
		panic(err)
	}
	order := func(id int, customer string, payErr error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			sql := "INSERT INTO " + pgx.Identifier{schema, "orders"}.Sanitize() + " VALUES ($1, $2)"
			if _, err := tx.Exec(ctx, sql, id, customer); err != nil {
				return err
			}
			client, err := worker.NewClient(worker.ClientConfig{Broker: box.In(tx)})
			if err != nil {
				return err
			}
			if _, err := client.Enqueue(ctx, welcomeMail.New(welcome{customer})); err != nil {
				return err
			}
			return payErr
		})
	}
	fmt.Println(order(1, "Ada", errors.New("the card was declined")))
	fmt.Println(order(2, "Grace", nil))

	stats, err := box.Stats(ctx, pool)
	if err != nil {
		panic(err)
	}
	fmt.Println("pending:", stats.Pending())
	// Output:
	// the card was declined
	// <nil>
	// pending: 1
}

// A relay publishes to any broker what has been committed. It may run beside workers, in the program that enqueues, or alone.
func ExampleRelay() {
	ctx, cancel := context.WithCancel(context.Background())
	pool, schema, drop := openDatabase(ctx)
	defer drop()
	broker, err := embedded.Open(ctx, embedded.Config{Path: ":memory:"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = broker.Close() }()
	if err := broker.CreateQueue(ctx, "mail"); err != nil {
		panic(err)
	}

	relay, err := outbox.NewRelay(outbox.RelayConfig{Pool: pool, Schema: schema, Broker: broker})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- relay.Run(ctx) }()

	box, err := outbox.New(outbox.Config{Schema: schema})
	if err != nil {
		panic(err)
	}
	job := outbox.Job{Queue: "mail", OrderingKey: "customer 2"}
	job.Body = []byte("hello, Grace")
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := box.Enqueue(ctx, tx, job)
		return err
	})
	if err != nil {
		panic(err)
	}

	sub, err := broker.Subscribe(ctx, "mail", queue.SubscribeConfig{})
	if err != nil {
		panic(err)
	}
	leases, err := sub.Receive(ctx, 1)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", leases[0].Body)
	cancel()
	fmt.Println(<-done)
	// Output:
	// hello, Grace
	// <nil>
}
