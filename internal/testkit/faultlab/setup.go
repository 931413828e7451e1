package faultlab

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/worker"
)

// Mutations are ways to run a worker otherwise than as it should be.
const (
	// AckFirst acks before the completion is stored. The check must find it out.
	AckFirst = "ack-first"
	// Apart hides that claims and queue share a database, so that there are two commits for a kill to come between.
	Apart = "apart"
	// NoTx has transactional handlers write outside of their transactions. The check must find it out.
	NoTx = "no-tx"
)

// workerSetup is a worker in this process.
type workerSetup struct {
	stack       *Stack
	queue       string
	book        *Book
	lease       time.Duration
	concurrency int
	mutation    string
	observer    worker.Observer
	log         io.Writer
}

func (c workerSetup) worker() (*worker.Worker, error) {
	kinds, err := registry(c.book, c.effect())
	if err != nil {
		return nil, err
	}
	cfg := worker.Config{
		Broker: c.stack.Broker, Registry: kinds, Store: c.stack.Claims, DeadLetters: c.stack.Dead,
		Queues:      []worker.QueueConfig{{Name: c.queue}},
		Concurrency: c.concurrency, Lease: c.lease,
		StopGrace: new(10 * time.Second),
		Observers: []worker.Observer{c.observer}, Logger: slog.New(slog.NewTextHandler(c.log, nil)),
	}
	switch c.mutation {
	case AckFirst:
		cfg.Store = lateCompletions{c.stack.Claims}
	case Apart:
		cfg.Store = struct{ idempotency.Store }{c.stack.Claims} // does not tell which database it lives in
	}
	return worker.New(cfg)
}

// effect returns what transactional handlers do; nil if the stack has no such.
func (c workerSetup) effect() func(context.Context) error {
	switch {
	case c.stack.effects == "":
		return nil
	case c.mutation == NoTx:
		return func(ctx context.Context) error { return writeEffect(ctx, c.stack.pool, c.stack.effects) }
	}
	return func(ctx context.Context) error {
		tx, err := postgres.TxFrom(ctx)
		if err != nil {
			return err
		}
		return writeEffect(ctx, tx, c.stack.effects)
	}
}

// lateCompletions breaks the settle order: it says that a completion is stored and stores it a while later, when the ack is long out.
type lateCompletions struct{ idempotency.Store }

func (s lateCompletions) Complete(_ context.Context, comps []idempotency.Completion) []error {
	//nolint:contextcheck // the delivery and its context are over by then
	time.AfterFunc(300*time.Millisecond, func() { s.Store.Complete(context.Background(), comps) })
	return make([]error, len(comps))
}

// watcher counts what the worker says about deliveries. The check takes nothing from it.
type watcher struct {
	absorbed atomic.Int64 // deliveries of a job that was completed already
	last     atomic.Int64 // when anything was received or settled, in Unix nanoseconds
}

func (w *watcher) Observe(e worker.Event) {
	switch e := e.(type) {
	case *worker.Received:
		w.last.Store(time.Now().UnixNano())
	case *worker.Settled:
		w.last.Store(time.Now().UnixNano())
		if e.Outcome == worker.OutcomeDuplicate {
			w.absorbed.Add(1)
		}
	}
}

// quiet is how long nothing was received or settled.
func (w *watcher) quiet() time.Duration { return time.Since(time.Unix(0, w.last.Load())) }
