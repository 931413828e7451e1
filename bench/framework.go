package main

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// framework measures what the worker itself costs a job: the broker hands out ready messages and forgets them, so that nothing else is
// measured but receive loop, guards, handler goroutine, settlement and observer.
func framework(c config) error {
	var cpu, allocs, bytesPer []float64
	jobs := 5 * c.jobs
	for range c.rounds {
		broker, err := newNullBroker(c.size)
		if err != nil {
			return err
		}
		observer, err := promObserver()
		if err != nil {
			return err
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := cpuTime()
		cfg := worker.Config{Broker: broker, DeadLetters: noDeadLetters{}, Concurrency: c.slots, Observers: []worker.Observer{observer}}
		c := c
		c.jobs = jobs
		if _, err := runAll(context.Background(), cfg, c, false); err != nil {
			return err
		}
		used := cpuTime() - began
		runtime.ReadMemStats(&after)
		cpu = append(cpu, float64(used.Microseconds())/float64(jobs))
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/float64(jobs))
		bytesPer = append(bytesPer, float64(after.TotalAlloc-before.TotalAlloc)/float64(jobs))
	}
	fmt.Println("framework alone, Prometheus observer on, broker that does nothing:")
	row("CPU per job", cpu, "us", "aim 15")
	row("allocations per job", allocs, "", "")
	row("bytes allocated per job", bytesPer, "B", "")
	fmt.Println()
	return nil
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// nullBroker hands out the same message for ever.
type nullBroker struct {
	queue.Broker
	message queue.Message
}

func newNullBroker(size int) (*nullBroker, error) {
	m, err := queue.NewMessage(queue.Envelope{ID: "0195f0e2-0000-7000-8000-000000000000", Kind: "bench", EnqueuedAt: time.Now()}, bytes.Repeat([]byte("x"), size))
	return &nullBroker{message: m}, err
}

func (b *nullBroker) Capabilities(string) queue.Capabilities {
	return queue.Capabilities{Name: "null", CountsAttempts: true}
}

func (b *nullBroker) CreateQueue(context.Context, string) error { return nil }

func (b *nullBroker) Subscribe(context.Context, string, queue.SubscribeConfig) (queue.Subscription, error) {
	return b, nil
}

func (b *nullBroker) Healthy() error { return nil }

func (b *nullBroker) Close() error { return nil }

func (b *nullBroker) Receive(ctx context.Context, limit int) ([]*queue.Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	leases := make([]*queue.Lease, limit)
	for i := range leases {
		leases[i] = queue.NewLease(b.message, nullHandle{}, time.Now().Add(time.Minute))
		leases[i].Queue, leases[i].Attempts = queueName, 1
	}
	return leases, nil
}

type nullHandle struct{}

func (nullHandle) Extend(context.Context, time.Duration) error    { return nil }
func (nullHandle) Settle(context.Context, queue.Settlement) error { return nil }
