package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// engine compares the worker with a bare loop over the same embedded queue.
func engine(c config) error {
	var raw, plain, keyed []round
	for range c.rounds {
		for _, one := range []struct {
			list *[]round
			run  func() (round, error)
		}{
			{&raw, func() (round, error) { return rawRound(c) }},
			{&plain, func() (round, error) { return workerRound(c, false) }},
			{&keyed, func() (round, error) { return workerRound(c, true) }},
		} {
			r, err := one.run()
			if err != nil {
				return err
			}
			*one.list = append(*one.list, r)
		}
	}
	fmt.Println("embedded queue, one file, mixed sync:")
	row("enqueue, raw engine, batches of 100", each(raw, func(r round) float64 { return r.enqueue }), "jobs/s", "")
	row("enqueue, client, batches of 100", each(plain, func(r round) float64 { return r.enqueue }), "jobs/s", "")
	row("receive to ack, raw engine", each(raw, func(r round) float64 { return r.work }), "jobs/s", "")
	row("receive to ack, worker, claims off", each(plain, func(r round) float64 { return r.work }), "jobs/s", "")
	row("receive to ack, worker, claims on", each(keyed, func(r round) float64 { return r.work }), "jobs/s", "")
	row("full cycle, raw engine", each(raw, round.cycle), "jobs/s", "")
	row("full cycle, worker, claims off", each(plain, round.cycle), "jobs/s", "")
	row("full cycle, worker, claims on", each(keyed, round.cycle), "jobs/s", "")
	row("full cycle, claims off / raw", ratios(plain, raw, round.cycle), "", "aim 0.7")
	row("full cycle, claims on / raw", ratios(keyed, raw, round.cycle), "", "aim 0.4")
	row("receive to ack, claims off / raw", ratios(plain, raw, func(r round) float64 { return r.work }), "", "")
	row("receive to ack, claims on / raw", ratios(keyed, raw, func(r round) float64 { return r.work }), "", "")
	row("CPU per job from receive to ack, raw", each(raw, func(r round) float64 { return r.cpu }), "us", "")
	row("CPU per job from receive to ack, claims off", each(plain, func(r round) float64 { return r.cpu }), "us", "")
	row("CPU per job from receive to ack, claims on", each(keyed, func(r round) float64 { return r.cpu }), "us", "")
	fmt.Println()
	return nil
}

// round holds rates in jobs per second, and the process's CPU per job from receive to ack in microseconds.
type round struct{ enqueue, work, cpu float64 }

// cycle is the rate of enqueue, receive and ack one after the other.
func (r round) cycle() float64 { return 1 / (1/r.enqueue + 1/r.work) }

const queueName = worker.DefaultQueue

// withBroker runs fn on a fresh file.
func withBroker(fn func(ctx context.Context, b *embedded.Broker) error) error {
	dir, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	b, err := embedded.Open(ctx, embedded.Config{Path: filepath.Join(dir, "caisson.db")})
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	if err := b.CreateQueue(ctx, queueName); err != nil {
		return err
	}
	return fn(ctx, b)
}

// rawRound enqueues and works off c.jobs messages with nothing but the engine: c.slots goroutines that ack what a receiver hands them.
func rawRound(c config) (r round, err error) {
	err = withBroker(func(ctx context.Context, b *embedded.Broker) error {
		start := time.Now()
		body := bytes.Repeat([]byte("x"), c.size)
		for n := 0; n < c.jobs; n += 100 {
			pubs := make([]queue.Publication, 100)
			for i := range pubs {
				m, err := queue.NewMessage(queue.Envelope{ID: fmt.Sprintf("job-%d", n+i), Kind: "bench", EnqueuedAt: start}, body)
				if err != nil {
					return err
				}
				pubs[i] = queue.Publication{Message: m}
			}
			for _, res := range b.Publish(ctx, queueName, pubs) {
				if res.Err != nil {
					return res.Err
				}
			}
		}
		r.enqueue = rate(c.jobs, start)
		start = time.Now()
		began := cpuTime()
		if err := rawCycle(ctx, b, c); err != nil {
			return err
		}
		r.work, r.cpu = rate(c.jobs, start), perJob(c, began)
		return nil
	})
	return r, err
}

func rawCycle(ctx context.Context, b *embedded.Broker, c config) error {
	sub, err := b.Subscribe(ctx, queueName, queue.SubscribeConfig{Slots: c.slots})
	if err != nil {
		return err
	}
	leases := make(chan *queue.Lease, c.slots)
	var left atomic.Int64
	left.Store(int64(c.jobs))
	ctx, done := context.WithCancelCause(ctx)
	defer done(nil)
	var wg sync.WaitGroup
	for range c.slots {
		wg.Go(func() {
			for l := range leases {
				if err := l.Ack(context.Background()); err != nil {
					done(err)
				}
				if left.Add(-1) == 0 {
					done(nil)
				}
			}
		})
	}
	for ctx.Err() == nil {
		batch, err := sub.Receive(ctx, c.slots)
		if err != nil && ctx.Err() == nil {
			done(err)
		}
		for _, l := range batch {
			leases <- l
		}
	}
	close(leases)
	wg.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return sub.Close()
}

// workerRound does the same through client and worker, with a handler that does nothing.
func workerRound(c config, keyed bool) (r round, err error) {
	err = withBroker(func(ctx context.Context, b *embedded.Broker) error {
		claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: b.Path()})
		if err != nil {
			return err
		}
		defer func() { _ = claims.Close() }()
		dead, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: b.Path()})
		if err != nil {
			return err
		}
		defer func() { _ = dead.Close() }()
		start := time.Now()
		if err := enqueueAll(ctx, worker.ClientConfig{Broker: b}, c.size, c.jobs); err != nil {
			return err
		}
		r.enqueue = rate(c.jobs, start)
		cfg := worker.Config{Broker: b, Store: claims, DeadLetters: dead, Concurrency: c.slots}
		began := cpuTime()
		start, err = runAll(ctx, cfg, c, keyed)
		r.work, r.cpu = rate(c.jobs, start), perJob(c, began)
		return err
	})
	return r, err
}

func enqueueAll(ctx context.Context, cfg worker.ClientConfig, size, n int) error {
	client, err := worker.NewClient(cfg)
	if err != nil {
		return err
	}
	payload := bytes.Repeat([]byte("x"), size)
	for ; n > 0; n -= batch {
		jobs := make([]worker.NewJob, batch)
		for i := range jobs {
			jobs[i] = worker.NewJob{Kind: "bench", Payload: payload}
		}
		for _, res := range client.EnqueueMany(ctx, jobs) {
			if res.Err != nil {
				return res.Err
			}
		}
	}
	return nil
}

// settledCounter tells when all jobs are settled.
type settledCounter struct {
	left atomic.Int64
	done func()
}

func (s *settledCounter) Observe(e worker.Event) {
	if _, ok := e.(*worker.Settled); ok && s.left.Add(-1) == 0 {
		s.done()
	}
}

// runAll works c.jobs off and returns when it began.
func runAll(ctx context.Context, cfg worker.Config, c config, keyed bool) (time.Time, error) {
	start := time.Now()
	return start, runWorker(ctx, cfg, c.jobs, keyed, func() {})
}

// runWorker works that many jobs off with a handler that does nothing. It calls done once the last one is settled, and then stops the worker.
func runWorker(ctx context.Context, cfg worker.Config, jobs int, keyed bool, done func()) error {
	return runHandler(ctx, cfg, jobs, keyed, func(context.Context, []byte) error { return nil }, done)
}

// runHandler is runWorker with another handler.
func runHandler(
	ctx context.Context, cfg worker.Config, jobs int, keyed bool, handler func(context.Context, []byte) error, done func(),
) error {
	registry := worker.NewRegistry()
	kind := worker.Kind[[]byte]{Name: "bench", Config: worker.KindConfig{Keyed: &keyed}}
	worker.Handle(registry, kind, handler)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counter := &settledCounter{done: func() { done(); cancel() }}
	counter.left.Store(int64(jobs))
	cfg.Registry = registry
	cfg.Observers = append(slices.Clone(cfg.Observers), counter)
	w, err := worker.New(cfg)
	if err != nil {
		return err
	}
	if err := w.Run(ctx); err != nil {
		return err
	}
	if left := counter.left.Load(); left > 0 {
		return fmt.Errorf("%d jobs were not settled in time", left)
	}
	return nil
}

func perJob(c config, began time.Duration) float64 {
	return float64((cpuTime() - began).Nanoseconds()) / 1000 / float64(c.jobs)
}

func rate(n int, start time.Time) float64 { return float64(n) / time.Since(start).Seconds() }
