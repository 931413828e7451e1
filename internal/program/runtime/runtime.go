package runtime

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/internal/program/admin"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/worker"
)

// Config is what a runtime is made of.
type Config struct {
	// Settings are the program's configuration. Required.
	Settings *config.Config
	// Setup registers the program's kinds. Nil registers none.
	Setup func(*worker.Registry) error
	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Runtime is a worker or a relay with everything around it. Run it once, and close it.
type Runtime struct {
	cfg      *config.Config
	logger   *slog.Logger
	assembly *assembly // nil for a relay
	metrics  *metrics
	probe    atomic.Pointer[func(context.Context) error]
	api      lateAPI
	server   *admin.Server // nil if it is off
}

// Open assembles a worker, refuses what cannot work, and listens at the admin server's address. It does not wait for broker or stores.
func Open(ctx context.Context, c Config) (*Runtime, error) {
	c = c.withDefaults()
	a, err := assemble(c)
	if err != nil {
		return nil, err
	}
	breakers, err := a.check(ctx)
	if err != nil { // before a file is made for a worker that cannot start
		return nil, errors.Join(err, a.close())
	}
	if breakers != nil {
		c.Logger.Warn("a breaker's percentages cannot open it while its destination hangs; failures in a row still do", "error", breakers)
	}
	r, err := open(ctx, c, a)
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return r, nil
}

func open(ctx context.Context, c Config, a *assembly) (*Runtime, error) {
	r := &Runtime{cfg: c.Settings, logger: c.Logger, assembly: a, metrics: newMetrics(), api: lateAPI{registry: c.Settings.HasRegistry()}}
	var err error
	r.server, err = r.listen(ctx)
	return r, err
}

// Run works until ctx ends. The admin server outlives the work, so that its stop can be watched; if the server fails, the work stops.
func (r *Runtime) Run(ctx context.Context) error {
	if r.server == nil {
		return r.work(ctx)
	}
	group, working := errgroup.WithContext(ctx)
	watch, stopServer := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServer()
	group.Go(func() error {
		defer stopServer()
		return r.work(working)
	})
	group.Go(func() error { return r.server.Run(watch) })
	return group.Wait()
}

// Ready returns nil while jobs are worked or relayed, else what is missing.
func (r *Runtime) Ready(ctx context.Context) error {
	if probe := r.probe.Load(); probe != nil {
		return (*probe)(ctx)
	}
	return errors.New("connecting to " + backendsText(r.cfg))
}

// Close ends idle connections. Call it after Run has returned.
func (r *Runtime) Close() error { return r.assembly.close() }

// work opens broker and stores, works until ctx ends, and closes them after everything is settled.
func (r *Runtime) work(ctx context.Context) (err error) {
	set, err := r.connect(ctx)
	if err != nil || set == nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	if r.assembly == nil {
		return r.relayAlone(ctx, set)
	}
	defer addBallast()()
	observer, err := r.metrics.observer(r.cfg, set)
	if err != nil {
		return err
	}
	hooks, err := r.openWebhooks(set)
	if err != nil {
		return err
	}
	w, err := r.assembly.worker(set, r.logger, []worker.Observer{worker.NewLogObserver(r.logger), observer, hooks.Observer()})
	if err != nil {
		return err
	}
	observer.Attach(w)
	hooks.Attach(w)
	r.setProbe(set, func() error { return errors.Join(w.Ready(), hooks.Ready()) })
	r.logger.Info("worker starts", r.startAttrs()...)
	defer startReports(ctx, set.Statuses, r.cfg.Broker, w, r.logger)()
	return r.runBeside(ctx, set, hooks, w.Run)
}

// setProbe says who is ready when: works answers for the worker or relay, and a database must answer and have tables that fit.
func (r *Runtime) setProbe(set *backends.Set, works func() error) {
	probe := func(ctx context.Context) error {
		if err := works(); err != nil || set.Postgres == nil {
			return err
		}
		return set.Postgres.Ready(ctx)
	}
	r.probe.Store(&probe)
}

// openWebhooks connects webhook deliveries with the store, and has the API answer. Without a registry there is nothing to run: nil.
func (r *Runtime) openWebhooks(set *backends.Set) (*webhooks.Service, error) {
	a := r.assembly
	if a.webhooks == nil || !r.cfg.HasRegistry() {
		return nil, nil
	}
	hooks, err := a.webhooks.Open(webhooks.ServiceConfig{
		Backends: set, Kinds: a.registry.Kinds(), Queue: r.cfg.UsualQueue(), Breaker: breakerOf(r.cfg.Webhook.Breaker),
		Metrics: r.metrics.webhooks, Logger: r.logger,
	})
	if err != nil {
		return nil, err
	}
	r.metrics.registry.MustRegister(r.metrics.webhooks)
	r.api.handler.Store(&hooks.API)
	return hooks, nil
}

// runBeside runs run, with what a worker does beside its jobs. The error of a relay ends the worker: it would leave jobs behind for good.
func (r *Runtime) runBeside(ctx context.Context, set *backends.Set, hooks *webhooks.Service, run func(context.Context) error) error {
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
		r.sweep(side, set)
		return nil
	})
	if r.cfg.Outbox.Relay {
		group.Go(func() error { return r.relay(side, set) })
	}
	return group.Wait()
}
