package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/stack"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/webhook"
)

// PublisherConfig says where a program that publishes webhook events is configured. The zero value is right where the workers' variables are set.
type PublisherConfig struct {
	// File is the workers' configuration file. Empty means that of CAISSON_CONFIG, or none.
	File string
	// Env holds CAISSON_* variables in the form of os.Environ. Nil means those of the process.
	Env []string
	// Set are configuration values by key, such as "embedded.path". They are stronger than file and variables.
	Set map[string]string
	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger
}

// Publisher publishes webhook events in a program that runs no worker. It is safe for concurrent use: open one, and close it at the end.
type Publisher struct {
	*webhook.Publisher
	follows *webhooks.Publisher
	open    *stack.Stack
}

// OpenPublisher returns a publisher for a program that only publishes: with broker, store, registry, journal and order as the workers' configuration
// names them, by the code of the command "events publish". It waits for a broker, a database or a registry that does not answer until ctx
// is done, which bounds the opening only, and sees a change of the registry within 2 s. Nothing else is to be run: workers move on the lines of endpoints
// that ask for order.
//
// Handlers of a program of [Main] have a publisher already: [webhook.PublisherFrom].
func OpenPublisher(ctx context.Context, c PublisherConfig) (*Publisher, error) {
	p, err := openPublisher(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open webhook publisher: %w", err)
	}
	return p, nil
}

func openPublisher(ctx context.Context, c PublisherConfig) (*Publisher, error) {
	logger := cmp.Or(c.Logger, slog.Default())
	cfg, err := c.load(ctx, logger)
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
	open, err := stack.Open(ctx, cfg, stack.Create, logger)
	if err != nil {
		return nil, err
	}
	follows, err := settings.OpenPublisher(ctx, open, logger)
	if err != nil {
		return nil, errors.Join(err, open.Close())
	}
	return &Publisher{Publisher: follows.Publisher, follows: follows, open: open}, nil
}

// Close ends following the registry, and closes broker and store. Call it once, after the last Publish has returned.
func (p *Publisher) Close() error { return errors.Join(p.follows.Close(), p.open.Close()) }

// load reads the configuration, and logs its warnings.
func (c PublisherConfig) load(ctx context.Context, logger *slog.Logger) (*config.Config, error) {
	if c.Env == nil {
		c.Env = os.Environ()
	}
	cfg, warnings, err := config.Load(config.Sources{File: config.FileOf(c.File, c.Env), Env: c.Env, Flags: c.Set})
	for _, w := range warnings {
		logger.WarnContext(ctx, "configuration", "warning", w.String())
	}
	return cfg, err
}
