package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	claimspg "github.com/caisson-go/caisson/idempotency/postgres"
	"github.com/caisson-go/caisson/migrations"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

const (
	postgresDefault = "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"
	// postgresConns is each side's pool.
	postgresConns = 16
)

// postgres compares the worker on the embedded queue, with claims in PostgreSQL, with River, whose queue is PostgreSQL itself. Both do durable
// work: each commit waits for the disk. The sides write to the same server, each to tables of its own.
func postgres(c config) (err error) {
	ctx := context.Background()
	address := cmp.Or(os.Getenv("CAISSON_TEST_POSTGRES_URL"), postgresDefault)
	pool, err := postgresPool(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("CAISSON_TEST_POSTGRES_URL is no URL")
	}
	suffix := strings.ToLower(rand.Text()[:10])
	ourSchema, riverSchemaName := "bench_"+suffix, "river_"+suffix
	defer func() {
		for _, s := range []string{ourSchema, riverSchemaName} {
			_, dropErr := pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{s}.Sanitize()+" CASCADE")
			err = errors.Join(err, dropErr)
		}
	}()
	if err := riverSchema(ctx, pool, riverSchemaName); err != nil {
		return fmt.Errorf("river's tables: %w", err)
	}
	if _, err := migrations.Up(ctx, pool, ourSchema); err != nil {
		return err
	}
	effects := pgx.Identifier{ourSchema, "effects"}.Sanitize()
	if _, err := pool.Exec(ctx, "CREATE TABLE "+effects+" (job text NOT NULL)"); err != nil {
		return err
	}
	noop := func(context.Context, *river.Job[riverArgs]) error { return nil }
	insert := "INSERT INTO " + effects + " (job) VALUES ($1)"
	return withBroker(func(ctx context.Context, b *embedded.Broker) error {
		t := &contest{
			config: c, server: postgresServer(cmp.Or(u.Port(), "5432")),
			make: b.CreateQueue,
			drop: func(ctx context.Context, _ string) error { return checkpoint(ctx, pool) },
			sides: []*side{
				riverSide(c, pool, riverSchemaName, "river", noop),
				postgresSide(c, b, pool, ourSchema, "caisson", c.pgSlots, nothing),
				postgresSide(c, b, pool, ourSchema, "caisson, few slots", c.slots, nothing),
				riverSide(c, pool, riverSchemaName, "river, transaction", func(ctx context.Context, job *river.Job[riverArgs]) error {
					return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
						if _, err := tx.Exec(ctx, insert, strconv.FormatInt(job.ID, 10)); err != nil {
							return err
						}
						_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
						return err
					})
				}),
				postgresSide(c, b, pool, ourSchema, "caisson, transaction", c.slots, func(ctx context.Context, _ []byte) error {
					tx, err := claimspg.TxFrom(ctx)
					if err != nil {
						return err
					}
					_, err = tx.Exec(ctx, insert, worker.JobFrom(ctx).ID)
					return err
				}),
			},
		}
		if err := t.run(ctx); err != nil {
			return err
		}
		fmt.Printf("claims in PostgreSQL, embedded queue, %d slots (few: %d), beside River (%d workers, fetch cooldown %s), durable commits:\n",
			c.pgSlots, c.slots, riverWorkers, riverCooldown)
		t.print(map[string]aims{"caisson": {cycle: "aim 1.5"}})
		return nil
	})
}

func postgresPool(ctx context.Context, address string) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, errors.New("CAISSON_TEST_POSTGRES_URL is no URL")
	}
	pc.MaxConns = postgresConns
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, err
	}
	find, cancel := context.WithTimeout(ctx, findDeadline)
	defer cancel()
	if err := pool.Ping(find); err != nil {
		pool.Close()
		return nil, fmt.Errorf("PostgreSQL does not answer: start it with `make services`, or set CAISSON_TEST_POSTGRES_URL: %w", err)
	}
	return pool, nil
}

// checkpoint ends a round, so that each side begins as right after one: what a side has left to write must not be the next one's burden.
func checkpoint(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, "CHECKPOINT")
	return err
}

// postgresSide is client and worker on the embedded queue with claims in PostgreSQL.
func postgresSide(
	c config, b *embedded.Broker, pool *pgxpool.Pool, schema, label string, slots int, handler func(context.Context, []byte) error,
) *side {
	return &side{
		name: label,
		publish: func(ctx context.Context, name string, n, callers int) error {
			return fanOut(ctx, n, callers, func(ctx context.Context, jobs int) error {
				return enqueueAll(ctx, worker.ClientConfig{Broker: b, DefaultQueue: name}, c.size, jobs)
			})
		},
		work: func(ctx context.Context, name string, n int, done func()) error {
			claims, err := claimspg.New(pool, claimspg.Config{Schema: schema})
			if err != nil {
				return err
			}
			defer claims.Close()
			return runHandler(ctx, worker.Config{
				Broker: b, Store: claims, DeadLetters: noDeadLetters{}, Concurrency: slots, Queues: []worker.QueueConfig{{Name: name}},
				Logger: slog.New(slog.DiscardHandler), CleanUpInterval: time.Hour,
			}, n, true, handler, done)
		},
	}
}

func nothing(context.Context, []byte) error { return nil }

// postgresServer is the server's process with its children.
func postgresServer(port string) server {
	s := findServer(port)
	s.children = true
	return s
}
