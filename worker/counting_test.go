package worker_test

import (
	"context"
	"sync/atomic"
	"testing"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// countingBroker counts what the broker is asked to do with messages that pick says yes to.
type countingBroker struct {
	queue.Broker
	pick func(queue.Message) bool

	published, received, settled atomic.Int64
}

func (b *countingBroker) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	for _, p := range pubs {
		if b.pick(p.Message) {
			b.published.Add(1)
		}
	}
	return b.Broker.Publish(ctx, name, pubs)
}

func (b *countingBroker) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	sub, err := b.Broker.Subscribe(ctx, name, cfg)
	return &countingSubscription{sub, b}, err
}

type countingSubscription struct {
	queue.Subscription
	broker *countingBroker
}

func (s *countingSubscription) Receive(ctx context.Context, limit int) ([]*queue.Lease, error) {
	leases, err := s.Subscription.Receive(ctx, limit)
	for _, l := range leases {
		if s.broker.pick(l.Message) {
			s.broker.received.Add(1)
			l.Decorate(func(h queue.Handle) queue.Handle { return &countingHandle{h, s.broker} })
		}
	}
	return leases, err
}

type countingHandle struct {
	queue.Handle
	broker *countingBroker
}

func (h *countingHandle) Settle(ctx context.Context, s queue.Settlement) error {
	h.broker.settled.Add(1)
	return h.Handle.Settle(ctx, s)
}

// memoryRig is a rig without a file, for virtual time.
func memoryRig(t *testing.T) *rig {
	t.Helper()
	ctx := context.Background()
	broker, err := embedded.Open(ctx, embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: broker.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = claims.Close() })
	dead, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: broker.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dead.Close() })
	if err := broker.CreateQueue(ctx, worker.DefaultQueue); err != nil {
		t.Fatal(err)
	}
	return &rig{ctx: ctx, broker: broker, claims: claims, dead: dead}
}
