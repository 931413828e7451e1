package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// ours are the sides that run on Caisson's driver: the driver by itself, and client and worker on top of it.
func ours(c config, b queue.Broker) []*side {
	return []*side{
		{
			name: "driver",
			publish: func(ctx context.Context, name string, n, callers int) error {
				return fanOut(ctx, n, callers, func(ctx context.Context, jobs int) error { return publishBatches(ctx, b, name, c.size, jobs) })
			},
			work: func(ctx context.Context, name string, n int, done func()) error {
				return ackAll(ctx, b, name, c.slots, n, done)
			},
		},
		workerSide(c, b, "worker", false),
		workerSide(c, b, "worker+claims", true),
	}
}

// fanOut shares n jobs among callers.
func fanOut(ctx context.Context, n, callers int, publish func(ctx context.Context, jobs int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for range callers {
		g.Go(func() error { return publish(ctx, n/callers) })
	}
	return g.Wait()
}

var jobNumber atomic.Int64

// nextID is as long as an id that a client makes.
func nextID() string {
	const id = "0195f0e2-0000-7000-8000-000000000000"
	n := strconv.FormatInt(jobNumber.Add(1), 10)
	return id[:len(id)-len(n)] + n
}

func publishBatches(ctx context.Context, b queue.Broker, name string, size, n int) error {
	body := bytes.Repeat([]byte("x"), size)
	for ; n > 0; n -= batch {
		pubs := make([]queue.Publication, batch)
		for i := range pubs {
			m, err := queue.NewMessage(queue.Envelope{ID: nextID(), Kind: "bench", EnqueuedAt: time.Now()}, body)
			if err != nil {
				return err
			}
			pubs[i] = queue.Publication{Message: m}
		}
		for _, res := range b.Publish(ctx, name, pubs) {
			if res.Err != nil {
				return res.Err
			}
		}
	}
	return nil
}

var errDone = errors.New("done")

// ackAll acks n messages as a worker does, from as many goroutines as there are slots, but without a worker.
func ackAll(ctx context.Context, b queue.Broker, name string, slots, n int, done func()) error {
	sub, err := b.Subscribe(ctx, name, queue.SubscribeConfig{Slots: slots})
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var left atomic.Int64
	left.Store(int64(n))
	free, leases := make(chan struct{}, slots), make(chan *queue.Lease, slots)
	var wg sync.WaitGroup
	for range slots {
		free <- struct{}{}
		wg.Go(func() {
			for l := range leases {
				if err := l.Ack(context.WithoutCancel(ctx)); err != nil {
					end(err)
				}
				if left.Add(-1) == 0 {
					done()
					end(errDone)
				}
				free <- struct{}{}
			}
		})
	}
	receiveAll(ctx, end, sub, free, leases)
	close(leases)
	wg.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, errDone) {
		return errors.Join(fmt.Errorf("%d messages left: %w", left.Load(), cause), sub.Close())
	}
	return sub.Close()
}

// receiveAll asks for as many messages as there are places free, until ctx is done.
func receiveAll(ctx context.Context, end func(error), sub queue.Subscription, free chan struct{}, leases chan<- *queue.Lease) {
	for {
		n := 0
		select {
		case <-free:
			n = 1 + drain(free)
		case <-ctx.Done():
			return
		}
		got, err := sub.Receive(ctx, n)
		if err != nil && ctx.Err() == nil {
			end(err)
		}
		for range n - len(got) {
			free <- struct{}{}
		}
		for _, l := range got {
			leases <- l
		}
	}
}

func drain(free <-chan struct{}) (n int) {
	for {
		select {
		case <-free:
			n++
		default:
			return n
		}
	}
}

// workerSide enqueues with a client and works off with a worker and a handler that does nothing.
func workerSide(c config, b queue.Broker, label string, keyed bool) *side {
	return &side{
		name: label,
		publish: func(ctx context.Context, name string, n, callers int) error {
			return fanOut(ctx, n, callers, func(ctx context.Context, jobs int) error {
				return enqueueAll(ctx, worker.ClientConfig{Broker: b, DefaultQueue: name}, c.size, jobs)
			})
		},
		work: func(ctx context.Context, name string, n int, done func()) error {
			cfg := worker.Config{
				Broker: b, DeadLetters: noDeadLetters{}, Concurrency: c.slots, Queues: []worker.QueueConfig{{Name: name}},
				Logger: slog.New(slog.DiscardHandler),
			}
			if !keyed {
				return runWorker(ctx, cfg, n, keyed, done)
			}
			return withClaims(ctx, func(s *claimsqlite.Store) error {
				cfg.Store = s
				return runWorker(ctx, cfg, n, keyed, done)
			})
		},
	}
}

// withClaims runs fn with claims in a fresh file.
func withClaims(ctx context.Context, fn func(*claimsqlite.Store) error) error {
	dir, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: filepath.Join(dir, "claims.db")})
	if err != nil {
		return err
	}
	defer func() { _ = claims.Close() }()
	return fn(claims)
}
