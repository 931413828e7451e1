package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/stack"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/worker"
)

// prepared is what a configuration and the program's setup make together, before anything is opened.
type prepared struct {
	cfg          *config.Config
	registry     *worker.Registry
	destinations pools.DestinationsConfig
	deliveries   *webhooks.Deliveries // nil without endpoints and registry
}

// prepare calls setup and applies the configuration to what it registered.
func (p *program) prepare(cfg *config.Config) (*prepared, error) {
	out := &prepared{cfg: cfg, registry: worker.NewRegistry(), destinations: destinationsOf(cfg)}
	if p.setup != nil {
		if err := p.setup(out.registry); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	if err := out.prepareWebhooks(); err != nil {
		return nil, cli.Fail(cli.Usage, err)
	}
	if len(out.registry.Kinds()) == 0 {
		return nil, cli.Refuse("there is nothing to run: register a kind in this program, or configure webhook.endpoints or webhook.secret_key")
	}
	override(out.registry, cfg)
	return out, nil
}

// prepareWebhooks registers the kind webhook.deliver, and adds the breakers and limits of the file's endpoints.
func (p *prepared) prepareWebhooks() error {
	settings, err := webhooks.Read(p.cfg)
	if err != nil || !settings.Any() {
		return err
	}
	if err := addEndpoints(p.destinations.Overrides, p.cfg.Webhook); err != nil {
		return err
	}
	p.deliveries, err = settings.Register(p.registry)
	return err
}

// worker returns the worker on s. What cannot work is refused.
func (p *prepared) worker(s *stack.Stack, logger *slog.Logger, observer worker.Observer) (*worker.Worker, error) {
	w, err := worker.New(worker.Config{
		Broker:       s.Broker,
		Registry:     p.registry,
		Queues:       queuesOf(p.cfg),
		Store:        s.Claims,
		DeadLetters:  s.DeadLetters,
		Destinations: p.destinations,
		Concurrency:  p.cfg.Concurrency,
		Lease:        p.cfg.Lease,
		Heartbeat:    p.cfg.Heartbeat,
		Stop:         stopOf(p.cfg.Stop),
		Hold:         holdOf(p.cfg.Hold),
		Retention:    worker.RetentionConfig{Keys: p.cfg.Idempotency.Retention, DeadLetters: p.cfg.DLQ.Retention},
		Observer:     observer,
		Logger:       logger,
	})
	if err != nil {
		return nil, cli.Fail(cli.Usage, err)
	}
	return w, nil
}

// check makes a worker on a stack that touches neither file nor broker and throws it away: everything that run would refuse is refused.
func (p *prepared) check(ctx context.Context) error {
	s, err := stack.Offline(ctx, p.cfg)
	if err != nil {
		return cli.Fail(cli.Usage, err)
	}
	_, err = p.worker(s, slog.New(slog.DiscardHandler), nil)
	return errors.Join(err, s.Close())
}

// close ends idle connections. Call it after the worker's Run has returned.
func (p *prepared) close() {
	if p.deliveries != nil {
		p.deliveries.Close()
	}
}

func queuesOf(cfg *config.Config) []worker.QueueConfig {
	queues := make([]worker.QueueConfig, len(cfg.Queues))
	for i, q := range cfg.Queues {
		queues[i] = worker.QueueConfig{Name: q.Name, Weight: q.Weight, Priority: q.Priority, DefaultKind: q.DefaultKind}
		if q.OnDead == config.OnDeadBlock {
			queues[i].OnDead = worker.OnDeadBlock
		}
	}
	return queues
}

// stopOf translates the zeros: in the configuration they mean none, in worker.Config the default.
func stopOf(c config.Stop) worker.StopConfig {
	return worker.StopConfig{Grace: orNone(c.Grace), Hard: max(c.Hard, time.Nanosecond)}
}

// holdOf translates the zeros: in the configuration they mean never.
func holdOf(c config.Hold) worker.HoldConfig {
	return worker.HoldConfig{After: orNone(c.After), Backlog: orNone(c.Backlog)}
}
