package jobtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing/synctest"

	"github.com/caisson-go/caisson/worker"
)

// process is one worker with the wires that tie it to the world. Cutting them is a crash.
type process struct {
	name   string
	worker *worker.Worker
	stop   context.CancelFunc
	done   chan struct{} // closed when Run has returned
	err    error         // of Run, once done

	alive    context.Context // ends with the crash
	crash    context.CancelCauseFunc
	isolated atomic.Bool // cut off from broker and stores
}

// ErrKilled is the cause with which a handler's context ends when its worker is killed, and what a killed worker's calls are answered.
var ErrKilled = errors.New("jobtest: the worker was killed")

type processKey struct{}

// crashable is the middleware by which a crash reaches running handlers: a real one would be gone with its process.
func crashable(next worker.Handler) worker.Handler {
	return func(ctx context.Context, job *worker.Job) error {
		c, ok := ctx.Value(processKey{}).(*process)
		if !ok {
			return next(ctx, job)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer c.onCrash(func() { cancel(ErrKilled) })()
		return next(ctx, job)
	}
}

// onCrash calls do when the crew crashes, unless stop is called before.
func (c *process) onCrash(do func()) (stop func() bool) { return context.AfterFunc(c.alive, do) }

// StartWorker starts one more worker beside those that run.
func (b *Bench) StartWorker() {
	b.t.Helper()
	b.mu.Lock()
	b.names++
	c := &process{name: fmt.Sprintf("worker-%d", b.names), done: make(chan struct{})}
	b.mu.Unlock()
	c.alive, c.crash = context.WithCancelCause(context.Background())

	cfg := b.cfg.Worker
	w := &faultyBroker{Broker: b.broker, bench: b, process: c}
	cfg.Broker, cfg.Registry, cfg.DeadLetters = w, b.registry, &faultyDeadLetters{Store: b.dead, bench: b, process: c}
	if !b.cfg.Unkeyed {
		cfg.Store = b.claimsOf(c)
	}
	if cfg.Owner == "" {
		cfg.Owner = c.name
	}
	cfg.Observers = []worker.Observer{&observer{ledger: b.ledger, process: c, next: b.cfg.Worker.Observers}}
	var err error
	if c.worker, err = worker.New(cfg); err != nil {
		b.t.Fatalf("jobtest: start a worker: %v", err)
	}
	b.reforce(c)
	ctx, stop := context.WithCancel(context.WithValue(context.Background(), processKey{}, c))
	c.stop = stop
	go func() {
		defer close(c.done)
		c.err = c.worker.Run(ctx)
	}()
	b.mu.Lock()
	b.running = append(b.running, c)
	b.mu.Unlock()
	synctest.Wait() // until it waits at the gate
}

// Kill crashes every worker as kill -9 does and starts a new one: leases and claims stay until they run out, nothing is settled, and no event
// is told. The contexts of running handlers end with [ErrKilled]; whatever they return is dropped.
func (b *Bench) Kill() {
	b.t.Helper()
	for _, c := range b.live() {
		b.kill(c)
	}
	b.StartWorker()
}

// KillOldest crashes the worker that has run longest, and starts none in its place.
func (b *Bench) KillOldest() {
	b.t.Helper()
	live := b.live()
	if len(live) == 0 {
		b.t.Fatal("jobtest: KillOldest: no worker runs")
	}
	b.kill(live[0])
}

// Isolate cuts the worker that has run longest off from broker and stores, as a broken network does, until [Bench.Rejoin]. It goes on
// running.
func (b *Bench) Isolate() {
	b.t.Helper()
	live := b.live()
	if len(live) == 0 {
		b.t.Fatal("jobtest: Isolate: no worker runs")
	}
	live[0].isolated.Store(true)
	b.stepper.interrupt()
	synctest.Wait()
}

// Rejoin ends [Bench.Isolate] for every worker.
func (b *Bench) Rejoin() {
	for _, c := range b.live() {
		c.isolated.Store(false)
	}
	b.stepper.interrupt()
	synctest.Wait()
}

func (b *Bench) kill(c *process) {
	c.crash(ErrKilled)
	b.stepper.interrupt()
	c.stop()
	b.mu.Lock()
	b.remove(c)
	b.ended = append(b.ended, c)
	b.mu.Unlock()
	synctest.Wait()
	b.ledger.crashed(c)
}

// Restart stops every worker properly and starts a new one. Handlers get the worker's grace, in virtual time; what has not started is given
// back.
func (b *Bench) Restart() {
	b.t.Helper()
	b.StopWorkers()
	b.StartWorker()
}

// StopWorkers stops every worker properly and starts none. It fails the test if a worker had to abandon a handler.
func (b *Bench) StopWorkers() {
	b.t.Helper()
	for _, c := range b.live() {
		if err := b.stop(c); err != nil {
			b.t.Errorf("jobtest: %s did not stop cleanly: %v", c.name, err)
		}
	}
}

func (b *Bench) stop(c *process) error {
	b.mu.Lock()
	b.remove(c)
	b.mu.Unlock()
	c.stop()
	<-c.done
	return c.err
}

func (b *Bench) remove(c *process) {
	if i := slices.Index(b.running, c); i >= 0 {
		b.running = slices.Delete(b.running, i, i+1)
	}
}
