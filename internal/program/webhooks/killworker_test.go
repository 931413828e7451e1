package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/webhook/ordering"
	"github.com/caisson-go/caisson/worker"
)

// envOrders has the orders of a process that [TestKillWebhooks] starts.
const envOrders = "CAISSON_TEST_WEBHOOK_ORDERS"

// orders are what such a process is told.
type orders struct {
	// Publish makes it the publisher. Else it is a worker.
	Publish bool
	// Dir has the publisher's book.
	Dir string
	// Settings are the configuration, by key.
	Settings map[string]string
	// Mutation is how the process is broken; empty means not at all.
	Mutation string
}

// Mutations, each of which the check must find out.
const (
	// early moves a line on as soon as the delivery at its head begins, not once it has ended.
	early = "early"
	// noLine gives each event of an ordered endpoint its job at once, whatever waits before it.
	noLine = "no line"
	// unconfirmed confirms events before they are published.
	unconfirmed = "unconfirmed"
)

// obey does what the environment orders. False means that it orders nothing.
func obey() (obeyed bool, err error) {
	text := os.Getenv(envOrders)
	if text == "" {
		return false, nil
	}
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return true, err
	}
	return true, o.obey()
}

// obey is what such a process does.
func (o orders) obey() error {
	ctx, stop := faultlab.ChildContext()
	defer stop()
	cfg, _, err := config.Load(config.Sources{Flags: o.Settings})
	if err != nil {
		return err
	}
	open, err := backends.Open(ctx, cfg, backends.Create, o.logger())
	if err != nil && ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return err
	}
	settings, err := Read(cfg)
	if err == nil && o.Publish {
		err = o.publish(ctx, settings, open)
	} else if err == nil {
		err = o.work(ctx, cfg, settings, open)
	}
	return errors.Join(err, open.Close())
}

// logger leaves out what the kills make usual.
func (o orders) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// lost and look are how soon the heads of lines are taken for lost, and how often they are looked for: a round has no minute to wait.
const (
	lost = time.Second
	look = 250 * time.Millisecond
)

// work is a worker with what runs beside it, as package worker/app puts them together.
func (o orders) work(ctx context.Context, cfg *config.Config, settings *Settings, open *backends.Set) error {
	registry := worker.NewRegistry()
	deliveries, err := settings.Register(registry)
	if err != nil {
		return err
	}
	defer deliveries.Close()
	breaker := breaker.Webhook()
	breaker.FailurePercent = new(0) // the receiver is not to be spared
	running, err := deliveries.Open(ServiceConfig{
		Backends: open, Kinds: registry.Kinds(), Queue: cfg.Queues[0].Name, Breaker: breaker, Metrics: NewMetrics(), Logger: o.logger(),
	})
	if err != nil {
		return err
	}
	if running.ordering, err = o.ordering(cfg, open); err != nil {
		return err
	}
	observer := running.Observer()
	if o.Mutation == early {
		observer = tooEarly{running.ordering}
	}
	w, err := worker.New(worker.Config{
		Broker: open.Broker, Registry: registry, Queues: []worker.QueueConfig{{Name: cfg.Queues[0].Name}}, Store: open.Claims, DeadLetters: open.DeadLetters,
		Concurrency: cfg.Concurrency, Lease: cfg.Lease, Observers: []worker.Observer{observer}, Logger: o.logger(),
	})
	if err != nil {
		return err
	}
	running.Attach(w)
	var group errgroup.Group
	after, stopAfter := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error { return running.Run(after) })
	group.Go(func() error {
		defer stopAfter()
		running.AwaitLoad(ctx)
		return w.Run(ctx)
	})
	return group.Wait()
}

func (o orders) ordering(cfg *config.Config, open *backends.Set) (*ordering.Dispatcher, error) {
	client, err := worker.NewClient(worker.ClientConfig{Broker: open.Broker, DefaultQueue: cfg.Queues[0].Name})
	if err != nil {
		return nil, err
	}
	lines := open.Queues
	if o.Mutation == noLine {
		lines = allHeads{lines}
	}
	return ordering.New(ordering.Config{Queues: lines, Events: open.Journal, Client: client, Lost: lost, Interval: look, Logger: o.logger()})
}

// tooEarly takes a delivery for ended when it begins.
type tooEarly struct{ *ordering.Dispatcher }

func (t tooEarly) Observe(e worker.Event) {
	if s, ok := e.(*worker.Started); ok {
		e = &worker.Settled{Job: s.Job, Kind: s.Kind, Settlement: worker.SettlementAck}
	}
	t.Dispatcher.Observe(e)
}

// allHeads says of each event that it is the head of its lines.
type allHeads struct{ ordering.Queues }

func (l allHeads) Append(ctx context.Context, tenant, event string, endpoints []string) ([]ordering.Entry, error) {
	if _, err := l.Queues.Append(ctx, tenant, event, endpoints); err != nil {
		return nil, err
	}
	var heads []ordering.Entry
	for _, endpoint := range endpoints {
		heads = append(heads, ordering.Entry{Endpoint: endpoint, Tenant: tenant, Event: event, Since: time.Now()})
	}
	return heads, nil
}
