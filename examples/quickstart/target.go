package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// target is where the story happens.
type target struct {
	dir    string
	broker string
	url    string // of a networked broker
	queue  string
}

// complete fills in what nobody chose. A broker that others use too gets a queue of the story's own.
func (p target) complete() (target, error) {
	p.broker = cmp.Or(p.broker, "embedded")
	p.queue = "quickstart"
	switch p.broker {
	case "embedded":
		if p.url != "" {
			return p, errors.New("-url: the embedded queue has none: leave it out, or choose a -broker")
		}
		p.queue = worker.DefaultQueue
	case "rabbitmq":
		p.url = cmp.Or(p.url, "amqp://guest:guest@127.0.0.1:5672/")
	case "sqs":
		p.url = cmp.Or(p.url, "http://127.0.0.1:4566")
	default:
		return p, fmt.Errorf("-broker %q: use embedded, rabbitmq or sqs", p.broker)
	}
	return p, nil
}

// empty drops what an earlier run that was cut short left in the queue. What is still delayed there does no harm when it comes: it has the
// ids of this run's jobs.
func empty(ctx context.Context, broker queue.Broker, name string) error {
	sub, err := broker.Subscribe(ctx, name, queue.SubscribeConfig{Slots: 100})
	if err != nil {
		return err
	}
	defer func() { _ = sub.Close() }()
	for {
		soon, cancel := context.WithTimeout(ctx, time.Second)
		leases, err := sub.Receive(soon, 100)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return sub.Close()
		}
		if err != nil {
			return fmt.Errorf("empty the queue %q: %w", name, err)
		}
		for _, l := range leases {
			if err := l.Ack(ctx); err != nil {
				return fmt.Errorf("empty the queue %q: %w", name, err)
			}
		}
	}
}
