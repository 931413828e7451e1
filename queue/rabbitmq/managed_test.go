package rabbitmq

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

// TestManagement sees what only the management API knows: queues of others, policies that lose jobs, and messages that are stuck on the way to
// a dead-letter queue that is gone.
func TestManagedNode(t *testing.T) {
	t.Parallel()
	node := testserver.StartRabbitMQWith(t, testserver.RabbitMQConfig{Management: true})
	r := &rig{TB: t, url: node.URL()}
	cfg := r.config()
	cfg.Management = strings.Replace(node.Management(), "://", "://guest:guest@", 1)
	cfg.DeliveryLimit = 1
	b, other := r.open(cfg), r.open(cfg)
	for name, b := range map[string]*Broker{"mine": b, "theirs": other} {
		if err := b.CreateQueue(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	node.Ctl(t, "set_policy", "short", `\.dlq$`, `{"message-ttl":1000000}`, "--apply-to", "queues")
	r.eventually(func() error {
		infos, err := b.Queues(t.Context())
		found := slices.ContainsFunc(infos, func(i queue.QueueInfo) bool { return i.Name == "theirs" })
		if err != nil || !found {
			return fmt.Errorf("queues %v: %w", infos, errors.Join(err, errors.New("another's queue is not listed")))
		}
		return nil
	})
	r.finds(b, "mine", `policy "short" sets message-ttl on "mine.dlq"`)

	r.raw(func(ch *amqp.Channel) {
		if _, err := ch.QueueDelete(testPrefix+queue.DLQ("mine"), false, false, false); err != nil {
			t.Fatal(err)
		}
	})
	r.finds(b, "mine", `dead-letter queue "`+testPrefix+`mine.dlq" is missing`)
	r.publish(b, "mine", text("a"))
	sub := r.subscribe(b, "mine", 30*time.Second, 1)
	for range 2 {
		if err := r.receive(sub).Settle(t.Context(), queue.Settlement{Action: queue.ActionRelease}); err != nil {
			t.Fatal(err)
		}
	}
	r.finds(b, "mine", "1 messages are stuck on the way")
}

// finds waits until Inspect says so.
func (r *rig) finds(b *Broker, name, what string) {
	r.Helper()
	r.eventually(func() error {
		found, err := b.Inspect(r.Context(), name, inspect.Use{})
		if err == nil && !slices.ContainsFunc(found, func(f inspect.Finding) bool { return strings.Contains(f.What, what) }) {
			err = fmt.Errorf("%q is not among the findings %v", what, found)
		}
		return err
	})
}
