package journal_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/ordering"
)

// networked is a broker on which queues can be made.
type networked interface {
	queue.Broker
	CreateQueue(ctx context.Context, name string) error
}

// newNetworkedRig has its jobs in a queue of its own, which remove deletes.
func newNetworkedRig(t *testing.T, broker networked, remove func(name string) error) *rig {
	t.Helper()
	name := "webhook-" + strings.ToLower(rand.Text()[:12])
	if err := broker.CreateQueue(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(name); err != nil {
			t.Errorf("delete queue %s: %v", name, err)
		}
	})
	r := newRigOn(t, broker, ":memory:", name)
	r.seen = newReceiver(t)
	r.closers = append(r.closers, r.seen.Close)
	return r
}

// Brokers that promise no order at all, with several deliveries to the endpoint allowed at once, and heads that are enqueued twice.
func TestOrderedOnNetworkedBrokers(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) *rig{"rabbitmq": rabbitRig, "sqs": sqsRig} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testOrderedTwice(t, open(t))
		})
	}
}

func testOrderedTwice(t *testing.T, r *rig) {
	t.Helper()
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
	o := r.ordering(&lines{}, func(cfg *ordering.Config) { cfg.Lost = 1 })
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
