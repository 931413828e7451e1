package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River's settings, tuned for this contest: its defaults are capped at about 1,000 jobs/s.
const (
	riverWorkers  = 2000
	riverCooldown = 10 * time.Millisecond
	riverPoll     = 50 * time.Millisecond
)

// riverArgs is a job whose arguments are as large as the other sides' payloads.
type riverArgs struct {
	Payload string `json:"payload"`
}

func (riverArgs) Kind() string { return "bench" }

// riverWorker does what do does.
type riverWorker struct {
	river.WorkerDefaults[riverArgs]

	do riverHandler
}

type riverHandler func(ctx context.Context, job *river.Job[riverArgs]) error

func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	return w.do(ctx, job)
}

// riverSchema makes River's tables.
func riverSchema(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// riverSide inserts with InsertManyFast and works off with its batch completer, as it does by default. do is what a job does.
func riverSide(c config, pool *pgxpool.Pool, schema, name string, do riverHandler) *side {
	base := river.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)}
	return &side{
		name: name,
		publish: func(ctx context.Context, queue string, n, callers int) error {
			client, err := river.NewClient(riverpgxv5.New(pool), &base)
			if err != nil {
				return err
			}
			return fanOut(ctx, n, callers, func(ctx context.Context, jobs int) error {
				return riverInsert(ctx, client, riverQueue(queue), c.size, jobs)
			})
		},
		work: func(ctx context.Context, queue string, n int, done func()) error {
			return riverWork(ctx, pool, base, riverQueue(queue), n, do, done)
		},
	}
}

// riverQueue is a name that River takes.
func riverQueue(name string) string { return strings.ReplaceAll(name, "-", "_") }

func riverInsert(ctx context.Context, client *river.Client[pgx.Tx], queue string, size, n int) error {
	args := riverArgs{Payload: strings.Repeat("x", size-len(`{"payload":""}`))}
	for ; n > 0; n -= batch {
		params := make([]river.InsertManyParams, batch)
		for i := range params {
			params[i] = river.InsertManyParams{Args: args, InsertOpts: &river.InsertOpts{Queue: queue}}
		}
		if _, err := client.InsertManyFast(ctx, params); err != nil {
			return err
		}
	}
	return nil
}

func riverWork(
	ctx context.Context, pool *pgxpool.Pool, cfg river.Config, queue string, n int, do riverHandler, done func(),
) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{do: do})
	cfg.Workers = workers
	cfg.Queues = map[string]river.QueueConfig{queue: {MaxWorkers: riverWorkers}}
	cfg.FetchCooldown, cfg.FetchPollInterval = riverCooldown, riverPoll
	client, err := river.NewClient(riverpgxv5.New(pool), &cfg)
	if err != nil {
		return err
	}
	// The event comes when the completion is in the table, some time after the job has run.
	events, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: n + 1})
	defer unsubscribe()
	var counted sync.WaitGroup
	completed := make(chan struct{})
	counted.Go(func() {
		for range n {
			select {
			case <-events:
			case <-ctx.Done():
				return
			}
		}
		close(completed)
	})
	if err := client.Start(ctx); err != nil {
		return err
	}
	select {
	case <-completed:
		done()
	case <-ctx.Done():
	}
	err = client.Stop(context.WithoutCancel(ctx))
	counted.Wait()
	return errors.Join(ctx.Err(), err)
}
