package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/worker"
)

// Client enqueues jobs in a program that runs no worker. It is safe for concurrent use: open one, and close it at the end.
type Client struct {
	*worker.Client
	set *backends.Set
}

// OpenClient returns a client for a program that only enqueues: with the broker that the workers' configuration names. It makes the queue of
// jobs that name none, which is the one that the command "enqueue" takes, and waits for a broker or a database that does not answer until ctx is
// done, which bounds the opening only.
func OpenClient(ctx context.Context, c Config) (*Client, error) {
	client, err := openClient(ctx, c.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open client: %w", err)
	}
	return client, nil
}

func openClient(ctx context.Context, c Config) (*Client, error) {
	cfg, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	set, err := backends.Open(ctx, cfg, backends.Create, c.Logger)
	if err != nil {
		return nil, err
	}
	client, err := worker.NewClient(worker.ClientConfig{Broker: set.Broker, DefaultQueue: cfg.UsualQueue()})
	if err == nil {
		err = set.Broker.CreateQueue(ctx, cfg.UsualQueue())
	}
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return &Client{Client: client, set: set}, nil
}

// Close closes broker and stores. Call it once, after the last Enqueue has returned.
func (c *Client) Close() error { return c.set.Close() }
