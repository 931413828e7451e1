// The program of a module outside of Caisson: claims and dead letters in SQLite beside RabbitMQ. It enqueues one job twice and prints how
// often the job ran.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue/rabbitmq"
	"github.com/caisson-go/caisson/worker"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run works queue at url until both copies of the job are settled.
func run(ctx context.Context, url, queue, dir string) (err error) {
	logger := slog.New(slog.DiscardHandler)
	broker, err := rabbitmq.Open(ctx, rabbitmq.Config{URLs: []string{url}, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	if err := broker.CreateQueue(ctx, queue); err != nil {
		return err
	}
	path := filepath.Join(dir, "claims.db")
	claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: path, Sync: "full"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claims.Close()) }()
	letters, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, letters.Close()) }()

	var ran atomic.Int64
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[string]{Name: "greet"}, func(context.Context, string) error {
		ran.Add(1)
		return nil
	})
	settled := make(settlements, 2)
	w, err := worker.New(worker.Config{
		Broker: broker, Registry: registry, Store: claims, DeadLetters: letters, Queues: []worker.QueueConfig{{Name: queue}},
		Observers: []worker.Observer{settled}, Logger: logger,
	})
	if err != nil {
		return err
	}
	client, err := worker.NewClient(worker.ClientConfig{Broker: broker, DefaultQueue: queue})
	if err != nil {
		return err
	}
	for range 2 {
		if _, err := client.Enqueue(ctx, worker.NewJob{Kind: "greet", Key: "once", Payload: []byte(`"hello"`)}); err != nil {
			return err
		}
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	for range 2 {
		select {
		case outcome := <-settled:
			fmt.Println("outcome:", outcome)
		case err := <-ended:
			return fmt.Errorf("the worker ended early: %w", err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		return err
	}
	fmt.Println("runs:", ran.Load())
	return nil
}

// settlements gets the outcomes of jobs that are done.
type settlements chan worker.Outcome

// Observe implements worker.Observer.
func (s settlements) Observe(e worker.Event) {
	if e, ok := e.(*worker.Settled); ok && e.Settlement == worker.SettlementAck {
		s <- e.Outcome
	}
}
