package runtime

import (
	"fmt"
	"log/slog"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/worker"
)

// assembly is what a configuration and a setup make together, before anything is opened.
type assembly struct {
	cfg          *config.Config
	registry     *worker.Registry
	destinations pools.DestinationsConfig
	webhooks     *webhooks.Kind // nil without endpoints and registry
}

// assemble calls the setup and applies the configuration to what it registered.
func assemble(c Config) (*assembly, error) {
	a := &assembly{cfg: c.Settings, registry: worker.NewRegistry(), destinations: destinationsOf(c.Settings)}
	if c.Setup != nil {
		if err := c.Setup(a.registry); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	if err := a.addWebhooks(); err != nil {
		return nil, cli.Fail(cli.Usage, err)
	}
	if len(a.registry.Kinds()) == 0 {
		return nil, cli.Refuse("there is nothing to run: register a kind in this program, or configure webhook.endpoints or webhook.secret_key")
	}
	override(a.registry, c.Settings)
	return a, nil
}

// addWebhooks registers the kind webhook.deliver, and adds the breakers and limits of the file's endpoints.
func (a *assembly) addWebhooks() error {
	settings, err := webhooks.Read(a.cfg)
	if err != nil || !settings.Any() {
		return err
	}
	if err := addEndpoints(a.destinations.ByName, a.cfg.Webhook); err != nil {
		return err
	}
	a.webhooks, err = settings.Register(a.registry)
	return err
}

// worker returns the worker on set. What cannot work is refused.
func (a *assembly) worker(set *backends.Set, logger *slog.Logger, observers []worker.Observer) (*worker.Worker, error) {
	w, err := worker.New(worker.Config{
		Broker:       set.Broker,
		Registry:     a.registry,
		Queues:       queuesOf(a.cfg),
		Store:        set.Claims,
		DeadLetters:  set.DeadLetters,
		Destinations: a.destinations,
		Concurrency:  a.cfg.Concurrency,
		Lease:        a.cfg.Lease,
		Heartbeat:    a.cfg.Heartbeat,
		StopGrace:    new(a.cfg.Stop.Grace),
		StopHard:     new(a.cfg.Stop.Hard),
		Hold:         worker.HoldConfig{After: new(a.cfg.Hold.After), Backlog: new(a.cfg.Hold.Backlog)},
		KeyRetention: a.cfg.Idempotency.Retention, DeadLetterRetention: a.cfg.DLQ.Retention,
		Observers: observers,
		Logger:    logger,
	})
	if err != nil {
		return nil, cli.Fail(cli.Usage, err)
	}
	return w, nil
}

func queuesOf(cfg *config.Config) []worker.QueueConfig {
	queues := make([]worker.QueueConfig, len(cfg.Queues))
	for i, q := range cfg.Queues {
		queues[i] = worker.QueueConfig{
			Name: q.Name, Weight: q.Weight, Priority: q.Priority, DefaultKind: q.DefaultKind, BlockOnDead: q.OnDead == config.OnDeadBlock,
		}
	}
	return queues
}
