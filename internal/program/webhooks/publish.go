package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/ordering"
	"github.com/caisson-go/caisson/worker"
)

// Publisher publishes in a program that delivers nothing. It follows the registry until it is closed.
type Publisher struct {
	*webhook.Publisher
	stop  context.CancelFunc
	ended chan error
}

// OpenPublisher returns a publisher that has loaded the registry. ctx bounds the opening only. Close it before the set.
func (s *Settings) OpenPublisher(ctx context.Context, open *backends.Set, logger *slog.Logger) (*Publisher, error) {
	registry, err := s.Registry(open.Endpoints)
	if err != nil {
		return nil, err
	}
	client, err := Client(ctx, open, s.cfg.UsualQueue())
	if err != nil {
		return nil, err
	}
	mirror, err := endpoints.NewMirror(endpoints.MirrorConfig{Registry: registry, Static: s.static, Logger: logger})
	if err != nil {
		return nil, err
	}
	ordering, err := s.ordering(open, client, logger)
	if err != nil {
		return nil, err
	}
	publisher, err := webhook.NewPublisher(webhook.PublisherConfig{Client: client, Subscribers: mirror, Events: open.Journal, Ordering: ordering})
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &Publisher{Publisher: publisher, stop: stop, ended: make(chan error, 1)}
	go func() { p.ended <- mirror.Run(following) }()
	select {
	case <-mirror.Loaded():
		return p, nil
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("load the registry: %w", ctx.Err()), p.Close())
	}
}

// Close ends following the registry. Call it once.
func (p *Publisher) Close() error {
	p.stop()
	return <-p.ended
}

// PublishOnce publishes one event from a program that does not follow the registry.
func (s *Settings) PublishOnce(ctx context.Context, open *backends.Set, e webhook.Event) (published webhook.Published, err error) {
	publisher, err := s.OpenPublisher(ctx, open, nil)
	if err != nil {
		return webhook.Published{}, err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	return publisher.Publish(ctx, e)
}

// ordering returns what keeps order. Where deliveries are made it is to run.
func (s *Settings) ordering(open *backends.Set, client *worker.Client, logger *slog.Logger) (*ordering.Dispatcher, error) {
	return ordering.New(ordering.Config{
		Queues: open.Queues, Events: open.Journal, Client: client, MaxAge: s.cfg.Kinds[webhook.KindDeliver].MaxAge, Logger: logger,
	})
}

// Client returns a client for deliveries, and makes their queue if it is missing.
func Client(ctx context.Context, open *backends.Set, queue string) (*worker.Client, error) {
	if err := open.Broker.CreateQueue(ctx, queue); err != nil {
		return nil, err
	}
	return worker.NewClient(worker.ClientConfig{Broker: open.Broker, DefaultQueue: queue})
}
