package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// hooks is one run of the group webhooks: receivers in a process of their own and what is sent to them.
type hooks struct {
	config
	receiver  server
	guard     *webhook.Guard
	endpoints []webhook.Endpoint
	static    *webhook.Static
	body      []byte
}

// hookEndpoints is how many endpoints there are, each on a host of its own: so many that those that are called at the same time differ.
const hookEndpoints = 256

// hookSide is one way of delivering c.jobs bodies.
type hookSide struct {
	name string
	run  func(ctx context.Context, h *hooks, done func()) error
	laps []lap
}

// webhooks compares the worker and its webhook sender with a bare net/http loop.
func webhooks(c config) (err error) {
	ctx := context.Background()
	receiver, port, err := startHookReceiver(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, receiver.stop()) }()
	h, err := newHooks(c, port, server{pid: receiver.cmd.Process.Pid})
	if err != nil {
		return err
	}
	sides := []*hookSide{
		{name: "bare net/http", run: bareHooks(false)},
		{name: "bare net/http signing", run: bareHooks(true)},
		{name: "worker from memory", run: memoryHooks},
		{name: "worker embedded claims", run: fullHooks},
	}
	if len(c.filter) > 0 {
		sides = slices.DeleteFunc(sides, func(s *hookSide) bool { return !slices.Contains(c.filter, s.name) })
	}
	for n := range c.rounds {
		for i := range sides {
			s := sides[(n+i)%len(sides)]
			if err := h.lap(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	fmt.Printf("webhooks to %d fast endpoints on loopback addresses of their own, receivers in another process on the same cores:\n", hookEndpoints)
	for _, s := range sides {
		row("deliveries, "+s.name, each(s.laps, func(l lap) float64 { return l.rate }), "1/s", "")
	}
	for _, s := range sides[1:] {
		if sides[0].name != "bare net/http" {
			break // there is nothing to compare with
		}
		note := ""
		if s.name == "worker from memory" {
			note = "aim 0.75"
		}
		rateOf := func(l lap) float64 { return l.rate }
		ratioRow(s.name+" / "+sides[0].name, each(s.laps, rateOf), each(sides[0].laps, rateOf), note)
	}
	for _, s := range sides {
		row("CPU per delivery, "+s.name, each(s.laps, func(l lap) float64 { return l.client }), "us", "")
		row("and of the receivers", each(s.laps, func(l lap) float64 { return l.server }), "us", "")
	}
	fmt.Println()
	return nil
}

func newHooks(c config, port int, receiver server) (*hooks, error) {
	guard, err := webhook.NewGuard(webhook.GuardConfig{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		return nil, err
	}
	h := &hooks{config: c, receiver: receiver, guard: guard, body: bytes.Repeat([]byte("x"), c.size)}
	for i := range hookEndpoints {
		h.endpoints = append(h.endpoints, webhook.Endpoint{
			ID: fmt.Sprintf("ep-%d", i), URL: fmt.Sprintf("http://127.20.0.%d:%d/hook", i, port), AllowHTTP: true,
			Secrets: []signature.Secret{signature.NewSecret()},
			// What is measured is the rate of the sender, not that of one endpoint: none is refused a call.
			Concurrency: c.slots,
		})
	}
	h.static, err = webhook.NewStatic(guard, h.endpoints...)
	return h, err
}

// lap runs one side once. It is over when the last delivery was answered.
func (h *hooks) lap(ctx context.Context, s *hookSide) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	var l lap
	var start time.Time
	var began, there time.Duration
	begin := func() { start, began, there = time.Now(), cpuTime(), h.receiver.cpu() }
	begin()
	err := s.run(withBegin(ctx, begin), h, func() {
		l.rate, l.client = rate(h.jobs, start), perJob(h.config, began)
		l.server = float64((h.receiver.cpu() - there).Microseconds()) / float64(h.jobs)
	})
	s.laps = append(s.laps, l)
	return err
}

// A side that has to prepare something begins its lap itself.
type beginKey struct{}

func withBegin(ctx context.Context, begin func()) context.Context {
	return context.WithValue(ctx, beginKey{}, begin)
}

func beginLap(ctx context.Context) { ctx.Value(beginKey{}).(func())() }

// memoryHooks delivers from a queue in memory, without claims and without a log of attempts.
func memoryHooks(ctx context.Context, h *hooks, done func()) error {
	broker, err := newMemoryBroker(h)
	if err != nil {
		return err
	}
	return h.work(ctx, worker.Config{Broker: broker, DeadLetters: noDeadLetters{}}, false, done)
}

// fullHooks delivers from the embedded queue, with claims in the same file. Enqueuing is not measured.
func fullHooks(ctx context.Context, h *hooks, done func()) error {
	return withBroker(func(_ context.Context, b *embedded.Broker) error {
		claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: b.Path()})
		if err != nil {
			return err
		}
		defer func() { _ = claims.Close() }()
		client, err := worker.NewClient(worker.ClientConfig{Broker: b})
		if err != nil {
			return err
		}
		for n := 0; n < h.jobs; n += batch {
			jobs := make([]worker.NewJob, min(batch, h.jobs-n))
			for i := range jobs {
				jobs[i] = webhook.NewDelivery(h.endpoints[(n+i)%hookEndpoints].ID, fmt.Sprintf("evt_%d", n+i), h.body, nil)
			}
			for _, r := range client.EnqueueMany(ctx, jobs) {
				if r.Err != nil {
					return r.Err
				}
			}
		}
		return h.work(ctx, worker.Config{Broker: b, Store: claims, DeadLetters: noDeadLetters{}}, true, done)
	})
}

// work delivers h.jobs jobs with a worker.
func (h *hooks) work(ctx context.Context, cfg worker.Config, keyed bool, done func()) error {
	registry := worker.NewRegistry()
	sender, err := webhook.NewSender(webhook.Config{Endpoints: h.static, Guard: h.guard})
	if err != nil {
		return err
	}
	sender.Register(registry)
	defer sender.Close()
	registry.Configure(webhook.KindDeliver, func(k *worker.KindConfig) { k.Keyed = &keyed })
	metrics, err := promObserver()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counter := &settledCounter{done: func() { done(); cancel() }}
	counter.left.Store(int64(h.jobs))
	failures := &failureCounter{}
	cfg.Registry, cfg.Concurrency, cfg.Observers = registry, h.slots, []worker.Observer{metrics, failures, counter}
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Destinations.Default = h.endpoints[0].DestinationConfig()
	w, err := worker.New(cfg)
	if err != nil {
		return err
	}
	beginLap(ctx)
	if err := w.Run(ctx); err != nil {
		return err
	}
	if left, failed := counter.left.Load(), failures.n.Load(); left > 0 || failed > 0 {
		return fmt.Errorf("%d jobs were not settled in time, %d did not succeed", left, failed)
	}
	return nil
}
