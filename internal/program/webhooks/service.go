package webhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/ordering"
	"github.com/caisson-go/caisson/worker"
)

// ServiceConfig is where deliveries are made.
type ServiceConfig struct {
	Backends *backends.Set
	// Kinds are the names of those that the worker handles.
	Kinds []string
	// Queue of deliveries.
	Queue string
	// Breaker of the registry's endpoints.
	Breaker breaker.Config
	// Metrics counts. Required.
	Metrics *Metrics
	Logger  *slog.Logger
}

// Service is what runs beside a worker that has a registry.
type Service struct {
	config    ServiceConfig
	limits    *pools.Destinations
	mirror    *endpoints.Mirror
	ordering  *ordering.Dispatcher
	publisher *webhook.Publisher
	owners    owners
	recorder  *journal.Recorder
	disabler  *endpoints.AutoDisabler
	// API answers the paths under /v1/.
	API http.Handler
}

// Open connects the deliveries with the store. Without a registry it returns nil, whose methods do nothing. Make the worker with its Observer, and
// Attach it, before Run.
func (d *Kind) Open(p ServiceConfig) (*Service, error) {
	s := d.settings
	if s.keys == nil {
		return nil, nil
	}
	registry, err := s.Registry(p.Backends.Endpoints)
	if err != nil {
		return nil, err
	}
	r := &Service{config: p}
	if r.mirror, err = endpoints.NewMirror(endpoints.MirrorConfig{Registry: registry, Static: s.static, OnChange: r.changed, Logger: p.Logger}); err != nil {
		return nil, err
	}
	if r.recorder, err = s.recorder(p); err != nil {
		return nil, err
	}
	client, err := worker.NewClient(worker.ClientConfig{Broker: p.Backends.Broker, DefaultQueue: p.Queue})
	if err != nil {
		return nil, err
	}
	if r.ordering, err = s.ordering(p.Backends, client, p.Logger); err != nil {
		return nil, err
	}
	if r.publisher, err = webhook.NewPublisher(webhook.PublisherConfig{
		Client: client, Subscribers: r.mirror, Events: p.Backends.Journal, Ordering: r.ordering, OnPublished: p.Metrics.publish,
	}); err != nil {
		return nil, err
	}
	r.owners = owners{drop: r.ordering.Drop, of: make(map[string]string), logger: p.Logger}
	if r.disabler, err = s.disabler(p, registry, r.mirror, client); err != nil {
		return nil, err
	}
	if r.API, err = s.api(p, registry, r, client, d.sender); err != nil {
		return nil, err
	}
	observe := r.disabler.Observe
	if s.cfg.Webhook.AttemptLog > 0 {
		observe = func(a webhook.Attempt) {
			r.disabler.Observe(a)
			r.recorder.Observe(a)
		}
	}
	p.Metrics.attach(r)
	d.observe.Store(&observe)
	d.lookup.mirror.Store(r.mirror)
	return r, nil
}

// recorder writes the log of attempts, and removes what is expired.
func (s *Settings) recorder(p ServiceConfig) (*journal.Recorder, error) {
	w := s.cfg.Webhook
	return journal.NewRecorder(journal.RecorderConfig{
		Store: p.Backends.Journal, Events: w.EventRetention, Attempts: cmp.Or(w.AttemptLog, w.EventRetention), Logger: p.Logger,
	})
}

// disabler disables endpoints. Its notices are for programs that have a handler for them.
func (s *Settings) disabler(p ServiceConfig, registry *endpoints.Registry, known webhook.Endpoints, client *worker.Client) (*endpoints.AutoDisabler, error) {
	c := endpoints.AutoDisablerConfig{
		Registry: registry, Endpoints: known, Backoff: s.cfg.Webhook.Default.Backoff, Logger: p.Logger, OnDisabled: p.Metrics.disabled,
	}
	if n := c.Backoff.Len(); n > 0 {
		c.Attempts = n + 1
	}
	if slices.Contains(p.Kinds, endpoints.KindDisabled) {
		c.Client = client
	}
	return endpoints.NewAutoDisabler(c)
}

func (s *Settings) api(p ServiceConfig, registry *endpoints.Registry, r *Service, client *worker.Client, sender *webhook.Sender) (http.Handler, error) {
	again, err := s.Recovery(p.Backends, client, "API of "+cli.Actor())
	if err != nil {
		return nil, err
	}
	return webhookapi.New(webhookapi.Config{
		Registry: registry, Guard: s.guard, Publisher: r.publisher, Journal: p.Backends.Journal, Recovery: again, Sender: sender,
		Queues: p.Backends.Queues, Letters: p.Backends.Letters, StatusStore: p.Backends.Statuses,
		MaxTimeout: s.timeouts.Total, MaxEvent: s.MaxEvent(p.Backends.Broker.Capabilities(p.Queue).MaxBody), Logger: p.Logger,
	})
}

// changed takes an endpoint's change over into the worker's breakers and limits.
func (r *Service) changed(e webhook.Endpoint, deleted bool) {
	r.config.Metrics.changed(e, deleted)
	r.owners.changed(e, deleted)
	var own *pools.DestinationConfig
	if !deleted {
		c := e.DestinationConfig()
		c.Breaker = r.config.Breaker
		own = &c
	}
	if err := webhook.Apply(r.limits, time.Now(), e, own); err != nil {
		r.config.Logger.Error("the limits of a webhook endpoint could not be set: it keeps those that it had", "endpoint", e.ID, "error", err)
	}
}

// Observer returns what observes the worker.
func (r *Service) Observer() worker.Observer {
	if r == nil {
		return nil
	}
	return r.ordering
}

// Context returns ctx with the publisher, for handlers.
func (r *Service) Context(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	return webhook.WithPublisher(ctx, r.publisher)
}

// Attach has the worker's breakers and limits follow the registry. Call it before Run.
func (r *Service) Attach(w *worker.Worker) {
	if r != nil {
		r.limits = w.Destinations()
	}
}

// Ready returns nil once the registry was loaded, unless nothing in it can be read.
func (r *Service) Ready() error {
	switch {
	case r == nil:
		return nil
	case !r.loaded():
		return errors.New("the registry of webhook endpoints was not loaded yet: their deliveries wait")
	}
	return r.mirror.Usable()
}

func (r *Service) loaded() bool {
	select {
	case <-r.mirror.Loaded():
		return true
	default:
		return false
	}
}

// firstLoad is how long jobs wait for the registry. Those of other kinds need none.
const firstLoad = 10 * time.Second

// AwaitLoad waits until the registry was loaded, for a while: an endpoint that is paused gets no delivery from a worker that has just started.
func (r *Service) AwaitLoad(ctx context.Context) {
	if r == nil {
		return
	}
	late := time.NewTimer(firstLoad)
	defer late.Stop()
	select {
	case <-r.mirror.Loaded():
	case <-late.C:
		r.config.Logger.Warn("the registry of webhook endpoints is not loaded yet: their deliveries are put back until it is")
	case <-ctx.Done():
	}
}

// Run keeps everything up to date until ctx ends. End it after the worker, so that its last attempts are logged.
func (r *Service) Run(ctx context.Context) error {
	if r == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	for name, run := range map[string]func(context.Context) error{
		"mirror": r.mirror.Run, "recorder": r.recorder.Run, "auto-disabler": r.disabler.Run, "ordering": r.ordering.Run,
	} {
		group.Go(func() error {
			if err := run(ctx); err != nil {
				return fmt.Errorf("webhook %s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
