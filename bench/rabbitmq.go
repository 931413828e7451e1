package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue/rabbitmq"
)

const (
	amqpDefault  = "amqp://guest:guest@127.0.0.1:5672/"
	amqpPrefix   = "cs1." // of the driver's queues, so that the bare loop uses the same
	findDeadline = 10 * time.Second
)

// rabbitMQ compares driver and worker with bare amqp091-go loops, on quorum queues.
func rabbitMQ(c config) error {
	ctx := context.Background()
	address := cmp.Or(os.Getenv("CAISSON_TEST_AMQP_URL"), amqpDefault)
	find, cancel := context.WithTimeout(ctx, findDeadline)
	defer cancel()
	b, err := rabbitmq.Open(find, rabbitmq.Config{URLs: []string{address}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("%w: start RabbitMQ with `make services`, or set CAISSON_TEST_AMQP_URL", err)
	}
	defer func() { _ = b.Close() }()
	bare, err := amqp.Dial(address)
	if err != nil {
		return err
	}
	defer func() { _ = bare.Close() }()
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("CAISSON_TEST_AMQP_URL is no URL")
	}
	t := &contest{
		config: c, server: findServer(cmp.Or(u.Port(), "5672")),
		make:  b.CreateQueue,
		drop:  func(_ context.Context, name string) error { return dropAMQP(bare, name) },
		sides: append(bareAMQP(c, address), ours(c, b)...),
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	fmt.Println("RabbitMQ, quorum queue, persistent, confirmed, mandatory:")
	t.print(map[string]aims{
		"driver": {publish: "aim 0.9"},
		"worker": {publish: "aim 0.9", cycle: "aim 0.85"},
	})
	return nil
}

// dropAMQP deletes a round's queues, and checks that the round has emptied them.
func dropAMQP(conn *amqp.Connection, name string) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	defer func() { _ = ch.Close() }()
	for _, full := range []string{amqpPrefix + name, amqpPrefix + name + ".dlq"} {
		left, err := ch.QueueDelete(full, false, false, false)
		if err != nil {
			return err
		}
		if left > 0 {
			return fmt.Errorf("%d messages were left in %s", left, full)
		}
	}
	return nil
}
