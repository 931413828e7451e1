package journal_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/sqlitefile"
	"github.com/caisson-go/caisson/internal/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/rabbitmq"
	"github.com/caisson-go/caisson/webhook"
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
	file, err := sqlitefile.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := "webhook-" + strings.ToLower(rand.Text()[:12])
	if err := broker.CreateQueue(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deleteQueue(url, name); err != nil {
			t.Errorf("delete queue %s: %v", name, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	r := newRigOn(t, broker, file, name)
	r.seen = newReceiver(t)
	r.closers = append(r.closers, r.seen.Close)
	return r
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

// A broker that promises no order at all, with several deliveries to the endpoint allowed at once, and heads that are enqueued twice.
func TestOrderedOnRabbitMQ(t *testing.T) {
	t.Parallel()
	r := rabbitRig(t)
	r.add("line", ordered)
	r.add("free", nil)
	failed := false
	r.seen.answers(func(endpoint, event string) int {
		if endpoint == "line" && event == "evt_02" && !failed {
			failed = true
			return http.StatusBadGateway
		}
		return http.StatusOK
	})
	o := r.ordering(&lines{}, func(cfg *webhook.OrderingConfig) { cfg.Lost = 1 })
	r.startOrdered(o)
	p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Ordering = o })
	var all []string
	for i := range 20 {
		all = append(all, r.publish(p, webhook.Event{ID: fmt.Sprintf("evt_%02d", i), Type: "t", Body: []byte("{}")}, 2))
		if i%5 == 0 {
			if err := o.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.await("an empty line", func() bool { return r.linesEmpty() && len(firsts(r.seen.took("free"))) == len(all) })
	if got := r.seen.took("line"); !slices.Equal(got, all) {
		t.Errorf("it took %v", got)
	}
	r.once([]string{"free"}, all...)
}
