package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/internal/program/admin"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/stack"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/worker"
)

// site is where a worker works: what is watched before there is one, while its broker and its store are waited for.
type site struct {
	cfg     *config.Config
	metrics *metrics
	probe   atomic.Pointer[func(context.Context) error]
	api     lateAPI
}

func newSite(cfg *config.Config) *site {
	return &site{cfg: cfg, metrics: newMetrics(), api: lateAPI{registry: cfg.HasRegistry()}}
}

// ready is the readiness check.
func (s *site) ready(ctx context.Context) error {
	if probe := s.probe.Load(); probe != nil {
		return (*probe)(ctx)
	}
	return errors.New("connecting to " + s.places())
}

// is says who is ready when: works answers for the worker or relay, and a database must answer and have tables that fit.
func (s *site) is(open *stack.Stack, works func() error) {
	probe := func(ctx context.Context) error {
		if err := works(); err != nil || open.Postgres == nil {
			return err
		}
		return open.Postgres.Ready(ctx)
	}
	s.probe.Store(&probe)
}

// places names what is connected to.
func (s *site) places() string {
	var places []string
	if s.cfg.Networked() {
		places = append(places, s.cfg.Broker+" at "+stack.Address(s.cfg))
	}
	if at := stack.StoreAddress(s.cfg); at != "" {
		places = append(places, s.cfg.ClaimStore()+" at "+at)
	}
	if len(places) == 0 {
		return s.cfg.Broker + " at " + stack.Address(s.cfg)
	}
	return strings.Join(places, " and ")
}

// lateAfter is how long opening may take before the log says that it does.
const lateAfter = 5 * time.Second

// open opens the stack. Nil means that ctx ended before everything was there: nothing was begun.
func (s *site) open(ctx context.Context, logger *slog.Logger) (*stack.Stack, error) {
	places := s.places()
	if s.cfg.Networked() || s.cfg.ClaimStore() == config.StorePostgres {
		logger.Info("connecting", "to", places)
	}
	late := time.AfterFunc(lateAfter, func() { logger.Warn("still connecting: not ready until there is an answer", "to", places) })
	defer late.Stop()
	open, err := stack.Open(ctx, s.cfg, stack.Create, logger)
	if err != nil && ctx.Err() != nil {
		return nil, nil //nolint:nilerr // stopped before it was there
	}
	return open, err
}

// work opens the stack, runs the worker until ctx ends, and closes the stack after the worker has settled what it held.
func (s *site) work(ctx context.Context, p *prepared, logger *slog.Logger, server *admin.Server) (err error) {
	open, err := s.open(ctx, logger)
	if err != nil || open == nil {
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	observer, err := s.metrics.observer(s.cfg, open)
	if err != nil {
		return err
	}
	hooks, err := s.openWebhooks(p, open, logger)
	if err != nil {
		return err
	}
	w, err := p.worker(open, logger, worker.Observers(worker.NewLogObserver(logger), observer, hooks.Observer()))
	if err != nil {
		return err
	}
	observer.Attach(w)
	hooks.Attach(w)
	s.is(open, func() error { return errors.Join(w.Ready(), hooks.Ready()) })
	logger.Info("worker starts", startAttrs(p, server)...)
	defer startReports(ctx, open.Board, s.cfg.Broker, w, logger)()
	return s.beside(ctx, open, hooks, logger, w.Run)
}

// beside runs run, with what a worker does beside its jobs. The error of a relay ends the worker: it would leave jobs behind for good.
func (s *site) beside(ctx context.Context, open *stack.Stack, hooks *webhooks.Running, logger *slog.Logger, run func(context.Context) error) error {
	group, working := errgroup.WithContext(ctx)
	side, stop := context.WithCancel(working)
	after, stopAfter := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		defer stopAfter()
		defer stop()
		hooks.AwaitLoad(working)
		return run(hooks.Context(working))
	})
	group.Go(func() error { return hooks.Run(after) })
	group.Go(func() error {
		s.sweep(side, open, logger)
		return nil
	})
	if s.cfg.Outbox.Relay {
		group.Go(func() error { return s.relay(side, open, logger) })
	}
	return group.Wait()
}

// startAttrs says what the worker works on and with, without secrets.
func startAttrs(p *prepared, server *admin.Server) []any {
	cfg := p.cfg
	names := make([]string, len(cfg.Queues))
	for i, q := range cfg.Queues {
		names[i] = q.Name
	}
	attrs := []any{
		"version", buildInfo().Version, "queues", strings.Join(names, ","), "concurrency", cfg.Concurrency,
		"kinds", strings.Join(p.registry.Kinds(), ","),
	}
	attrs = append(attrs, placeAttrs(cfg)...)
	if cfg.DLQBackend() == config.DLQBroker {
		attrs = append(attrs, "hold", "off, since dead letters have no store")
	}
	if cfg.Outbox.Relay {
		attrs = append(attrs, "outbox", "relayed here")
	}
	if n := len(cfg.Webhook.Endpoints); n > 0 {
		attrs = append(attrs, "webhook_endpoints", n)
	}
	if cfg.HasRegistry() {
		attrs = append(attrs, "webhook_registry", true)
	}
	if server != nil {
		attrs = append(attrs, "admin", server.Addr().String())
	}
	return attrs
}

// placeAttrs says which broker and store are used, without secrets.
func placeAttrs(cfg *config.Config) []any {
	attrs := []any{"broker", cfg.Broker}
	if cfg.Networked() {
		attrs = append(attrs, "at", stack.Address(cfg))
	} else {
		attrs = append(attrs, "file", cfg.Embedded.Path)
	}
	if cfg.Networked() || cfg.ClaimStore() == config.StorePostgres {
		attrs = append(attrs, "store", cfg.ClaimStore(), "dead_letters", cfg.DLQBackend())
	}
	if at := stack.StoreAddress(cfg); at != "" {
		attrs = append(attrs, "store_at", at)
	}
	if cfg.ClaimStore() == config.StorePostgres {
		attrs = append(attrs, "schema", cfg.Postgres.Schema)
	}
	return attrs
}
