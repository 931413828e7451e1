package journal_test

import (
	"log/slog"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/rabbitmq"
)

// amqpPrefix keeps what tests make apart from what others have on the machine's broker.
const amqpPrefix = "cs1."

// rabbitRig has its jobs in a queue of its own on RabbitMQ.
func rabbitRig(t *testing.T) *rig {
	t.Helper()
	url := testserver.AMQP(t)
	broker, err := rabbitmq.Open(t.Context(), rabbitmq.Config{URLs: []string{url}, Prefix: amqpPrefix, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return newNetworkedRig(t, broker, func(name string) error { return deleteQueue(url, name) })
}

func deleteQueue(url, name string) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, full := range []string{amqpPrefix + name, amqpPrefix + queue.DLQ(name)} {
		if _, err := ch.QueueDelete(full, false, false, false); err != nil {
			return err
		}
	}
	return nil
}
