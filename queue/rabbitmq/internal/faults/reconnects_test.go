package faults_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/rabbitmq"
)

// testTimeout is how long what must happen may take on a loaded machine.
const testTimeout = 2 * time.Minute

// reconnects cuts the link again and again: case I2.
func reconnects(t *testing.T, node *testserver.RabbitMQ) {
	p := testserver.StartProxy(t, node.Addr())
	b, err := rabbitmq.Open(t.Context(), rabbitmq.Config{URLs: []string{p.URL(node.URL())}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	const name = "cuts"
	if err := b.CreateQueue(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	sub, err := b.Subscribe(t.Context(), name, queue.SubscribeConfig{Lease: 30 * time.Second, Slots: 10})
	if err != nil {
		t.Fatal(err)
	}
	through(t, b, sub, name, "warm up")
	goroutines, links := runtime.NumGoroutine(), p.Connections()

	rounds := 8
	if os.Getenv("SOAK") != "" {
		rounds = 100
	}
	for round := range rounds {
		p.Cut()
		wait(t, 200*time.Millisecond) // the length of the cut
		p.Restore()
		back := time.Now()
		through(t, b, sub, name, fmt.Sprint(round))
		if took := time.Since(back); took > 10*time.Second {
			t.Errorf("round %d: consuming again after %v, want 10s at most", round, took)
		}
	}
	eventually.NoError(t, func() error {
		if n := p.Connections(); n != links {
			return fmt.Errorf("%d connections, %d at the start", n, links)
		}
		if n := runtime.NumGoroutine(); n > goroutines+5 {
			return fmt.Errorf("%d goroutines, %d at the start", n, goroutines)
		}
		return sub.Healthy()
	})
}

// through sends a message through the queue. What comes of an earlier one, whose confirmation was lost, is acked.
func through(t *testing.T, b queue.Broker, sub queue.Subscription, name, body string) {
	t.Helper()
	eventually.NoError(t, func() error {
		return b.Publish(t.Context(), name, []queue.Publication{{Message: queue.Message{Body: []byte(body)}}})[0].Err
	})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for {
		leases, err := sub.Receive(ctx, 1)
		if err != nil && (!errors.Is(err, queue.ErrUnavailable) || ctx.Err() != nil) {
			t.Fatalf("Receive: %v", err)
		}
		for _, l := range leases {
			_ = l.Ack(t.Context())
			if string(l.Body) == body {
				return
			}
		}
	}
}
