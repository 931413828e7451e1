package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/webhook"
)

// Publisher publishes webhook events in a program that runs no worker. It is safe for concurrent use: open one, and close it at the end.
type Publisher struct {
	*webhook.Publisher
	follows *webhooks.Publisher
	set     *backends.Set
}

// OpenPublisher returns a publisher for a program that only publishes: with broker, store, registry, journal and order as the workers' configuration
// names them, by the code of the command "events publish". It waits for a broker, a database or a registry that does not answer until ctx
// is done, which bounds the opening only, and sees a change of the registry within 2 s. Nothing else is to be run: workers move on the lines of endpoints
// that ask for order.
//
// Handlers of a program of [Main] have a publisher already: [webhook.PublisherFrom].
func OpenPublisher(ctx context.Context, c Config) (*Publisher, error) {
	p, err := openPublisher(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open webhook publisher: %w", err)
	}
	return p, nil
}

func openPublisher(ctx context.Context, c Config) (*Publisher, error) {
	c = c.withDefaults()
	cfg, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	settings, err := webhooks.Read(cfg)
	if err != nil {
		return nil, err
	}
	if !cfg.HasRegistry() {
		return nil, webhooks.ErrNoRegistry // before a file is made
	}
	set, err := backends.Open(ctx, cfg, backends.Create, c.Logger)
	if err != nil {
		return nil, err
	}
	follows, err := settings.OpenPublisher(ctx, set, c.Logger)
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return &Publisher{Publisher: follows.Publisher, follows: follows, set: set}, nil
}

// Close ends following the registry, and closes broker and store. Call it once, after the last Publish has returned.
func (p *Publisher) Close() error { return errors.Join(p.follows.Close(), p.set.Close()) }
