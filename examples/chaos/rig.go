package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// setup is one worker with one endpoint and a load.
type setup struct {
	// due lists when events are enqueued, since the beginning.
	due []time.Duration
	// maxWait is how long after the last one is due they may take.
	maxWait time.Duration
	behave  func(at time.Duration) reply
	// repair is when an endpoint that refuses connections begins to listen; zero if it always does.
	repair time.Duration

	attempts    int
	backoff     schedule.Backoff
	timeout     time.Duration
	destination pools.DestinationConfig
	hold        worker.HoldConfig
	// middleware changes what the worker hears; nil for nothing.
	middleware func(worker.Handler) worker.Handler
}

// every returns the times of a steady load.
func every(rate float64, length time.Duration) []time.Duration {
	list := make([]time.Duration, int(rate*length.Seconds()))
	for i := range list {
		list[i] = time.Duration(float64(i) / rate * float64(time.Second))
	}
	return list
}

const endpointID = "ep"

// run works the load off and returns what was seen. It ends when every event was delivered or died, or when patience is over.
func run(ctx context.Context, s setup) (o *observed, err error) {
	e := newEndpoint(s.behave)
	if err := e.listen(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if s.repair > 0 {
		if err := e.close(); err != nil {
			return nil, err
		}
	}
	broker, err := embedded.Open(ctx, embedded.Config{Path: ":memory:"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: broker.Path()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, claims.Close()) }()
	letters, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: broker.Path()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, letters.Close()) }()
	o = newObserved(s, e)
	w, sender, err := s.worker(ctx, stores{broker, claims, letters}, e, o)
	if err != nil {
		return nil, err
	}
	client, err := worker.NewClient(worker.ClientConfig{Broker: broker})
	if err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	e.start(time.Now())
	o.start(e.begin)
	go func() { ran <- w.Run(working) }()
	err = errors.Join(s.load(ctx, client, e), s.wait(ctx, o))
	stop()
	err = errors.Join(err, <-ran)
	sender.Close()
	if err == nil && e.wrong > 0 {
		err = fmt.Errorf("%d signatures did not verify", e.wrong)
	}
	return o, err
}

// stores are what a worker works on.
type stores struct {
	broker  *embedded.Broker
	claims  *claimsqlite.Store
	letters *dlqsqlite.Store
}

// worker makes the worker and its sender.
func (s setup) worker(ctx context.Context, in stores, e *endpoint, o *observed) (*worker.Worker, *webhook.Sender, error) {
	if err := in.broker.CreateQueue(ctx, worker.DefaultQueue); err != nil {
		return nil, nil, err
	}
	guard, err := webhook.NewGuard(webhook.GuardConfig{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		return nil, nil, err
	}
	endpoints, err := webhook.NewStatic(guard, webhook.Endpoint{
		ID: endpointID, URL: "http://" + e.address + "/hook", AllowHTTP: true, Secrets: []signature.Secret{e.secret}, Timeout: s.timeout,
	})
	if err != nil {
		return nil, nil, err
	}
	registry := worker.NewRegistry()
	if s.middleware != nil {
		registry.Use(s.middleware)
	}
	sender, err := webhook.NewSender(webhook.Config{Endpoints: endpoints, Guard: guard, Observe: o.attempt})
	if err != nil {
		return nil, nil, err
	}
	sender.Register(registry)
	registry.Configure(webhook.KindDeliver, func(k *worker.KindConfig) { k.MaxAttempts, k.Backoff = s.attempts, s.backoff })
	w, err := worker.New(worker.Config{
		Broker: in.broker, Registry: registry, Store: in.claims, DeadLetters: in.letters, Concurrency: 64, Observers: []worker.Observer{o}, Hold: s.hold,
		Destinations: pools.DestinationsConfig{Default: s.destination},
		StopGrace:    new(time.Second), StopHard: new(time.Second),
		Logger: slog.New(slog.DiscardHandler),
	})
	return w, sender, err
}

// load enqueues each event when it is due, and repairs an endpoint that refused connections.
func (s setup) load(ctx context.Context, client *worker.Client, e *endpoint) error {
	repaired := s.repair == 0
	for n, due := range s.due {
		if !repaired && due >= s.repair {
			if !pause.For(ctx, time.Until(e.begin.Add(s.repair))) {
				return context.Cause(ctx)
			}
			if err := e.listen(ctx); err != nil {
				return err
			}
			repaired = true
		}
		if !pause.For(ctx, time.Until(e.begin.Add(due))) {
			return context.Cause(ctx)
		}
		job := webhook.NewDelivery(endpointID, eventID(n), []byte(`{"type":"order.paid"}`), nil)
		job.ID = eventID(n)
		if _, err := client.Enqueue(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

func eventID(n int) string { return fmt.Sprintf("evt_%d", n) }

// wait returns once every event has come to an end, or patience is over.
func (s setup) wait(ctx context.Context, o *observed) error {
	limit := o.begin.Add(s.due[len(s.due)-1] + s.maxWait)
	for time.Now().Before(limit) {
		if !pause.For(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
		if o.finished() == len(s.due) {
			return nil
		}
	}
	return nil
}
