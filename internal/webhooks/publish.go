package webhooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/internal/stack"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/worker"
)

// PublishOnce publishes one event from a program that does not follow the registry.
func (s *Settings) PublishOnce(ctx context.Context, open *stack.Stack, registry *endpoints.Registry, queue string, e webhook.Event) (published webhook.Published, err error) {
	client, err := Client(ctx, open, queue)
	if err != nil {
		return webhook.Published{}, err
	}
	mirror, err := endpoints.NewMirror(endpoints.MirrorConfig{Registry: registry, Static: s.static})
	if err != nil {
		return webhook.Published{}, err
	}
	ordering, err := webhook.NewOrdering(webhook.OrderingConfig{Lines: open.Lines, Events: open.Journal, Client: client})
	if err != nil {
		return webhook.Published{}, err
	}
	publisher, err := webhook.NewPublisher(webhook.PublisherConfig{Client: client, Subscribers: mirror, Events: open.Journal, Ordering: ordering})
	if err != nil {
		return webhook.Published{}, err
	}
	following, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mirror.Run(following) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	select {
	case <-mirror.Loaded():
	case <-ctx.Done():
		return webhook.Published{}, fmt.Errorf("load the registry: %w", ctx.Err())
	}
	return publisher.Publish(ctx, e)
}

// Client returns a client for deliveries, and makes their queue if it is missing.
func Client(ctx context.Context, open *stack.Stack, queue string) (*worker.Client, error) {
	if err := open.Broker.CreateQueue(ctx, queue); err != nil {
		return nil, err
	}
	return worker.NewClient(worker.ClientConfig{Broker: open.Broker, DefaultQueue: queue})
}
