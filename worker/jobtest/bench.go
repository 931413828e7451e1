package jobtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// Config tunes a bench. The zero value is one worker with claims on the queue "default".
type Config struct {
	// Worker is the worker's configuration. The bench provides Broker, Registry, Store and PartDeadLetters: leave them out. The default
	// Logger writes warnings to the test's log.
	Worker worker.Config
	// Unkeyed leaves the idempotency store out.
	Unkeyed bool
	// Claims takes the place of the store of claims in memory; nil means that one. The test opens it inside the bubble and closes it after the
	// bench, and its clock has to be the bubble's.
	Claims idempotency.Store
	// PartDeadLetters takes the place of the store of dead letters in memory, under the same terms.
	DeadLetters dlq.Store
	// MaxWait is how much virtual time [Bench.Work] and [Bench.Drain] let pass before they fail the test. Zero means 24 h.
	MaxWait time.Duration
}

// Bench is a worker under test with everything that it works on. Its methods belong to the test's goroutine, except Reach, Client and the
// methods that only tell ([Bench.Attempts], [Bench.Where] and so on), which handlers may call too.
type Bench struct {
	t        testing.TB
	cfg      Config
	registry *worker.Registry

	broker  *embedded.Broker
	claims  idempotency.Store
	closers []func() error
	dead    dlq.Store
	client  *worker.Client

	stepper stepper
	ledger  *ledger
	faults  faults

	mu      sync.Mutex
	running []*process // live workers, oldest first
	ended   []*process // killed ones that still have to return
	forced  map[string]breaker.Override
	names   int
}

// New starts a worker for registry and returns its bench. It must be called inside a synctest bubble; everything ends with the test.
// It adds a middleware to registry.
func New(t testing.TB, registry *worker.Registry, cfg Config) *Bench {
	t.Helper()
	if !inBubble() {
		t.Fatal("jobtest.New was called outside a synctest bubble, where time is real: wrap the test in synctest.Test(t, func(t *testing.T) { ... })")
	}
	if cfg.Worker.Broker != nil || cfg.Worker.Registry != nil || cfg.Worker.Store != nil || cfg.Worker.DeadLetters != nil {
		t.Fatal("jobtest.New: leave Broker, Registry, Store and DeadLetters of Config.Worker out, the bench provides them; set Unkeyed for a worker without a store, Claims and DeadLetters for other stores")
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = 24 * time.Hour
	}
	if len(cfg.Worker.Queues) == 0 {
		cfg.Worker.Queues = []worker.QueueConfig{{Name: worker.DefaultQueue}}
	}
	if cfg.Worker.Logger == nil {
		cfg.Worker.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	b := &Bench{t: t, cfg: cfg, registry: registry, ledger: newLedger(), forced: make(map[string]breaker.Override)}
	b.faults.down = make(map[string]bool)
	registry.Use(crashable)
	if err := b.open(); err != nil {
		t.Fatalf("jobtest.New: %v", err)
	}
	t.Cleanup(b.close)
	b.StartWorker()
	return b
}

// inBubble tells whether the caller runs in a synctest bubble, which is all that Wait asks for.
func inBubble() (yes bool) {
	defer func() { yes = recover() == nil }()
	synctest.Wait()
	return true
}

func (b *Bench) open() (err error) {
	ctx := context.Background()
	if b.broker, err = embedded.Open(ctx, embedded.Config{Path: ":memory:"}); err != nil {
		return err
	}
	b.closers = []func() error{b.broker.Close}
	if b.claims = b.cfg.Claims; b.claims == nil {
		claims, err := sqlite.Open(ctx, sqlite.Config{Path: b.broker.Path()})
		if err != nil {
			return errors.Join(err, b.closeAll())
		}
		b.claims, b.closers = claims, append(b.closers, claims.Close)
	}
	if b.dead = b.cfg.DeadLetters; b.dead == nil {
		dead, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: b.broker.Path()})
		if err != nil {
			return errors.Join(err, b.closeAll())
		}
		b.dead, b.closers = dead, append(b.closers, dead.Close)
	}
	for _, q := range b.cfg.Worker.Queues {
		if err := b.broker.CreateQueue(ctx, q.Name); err != nil {
			return errors.Join(err, b.closeAll())
		}
	}
	b.client, err = worker.NewClient(worker.ClientConfig{Broker: b.Broker(), DefaultQueue: b.cfg.Worker.Queues[0].Name})
	return err
}

// close stops what still runs. Handlers have the worker's own grace.
func (b *Bench) close() {
	for _, c := range b.live() {
		if err := b.stop(c); err != nil {
			b.t.Errorf("jobtest: worker %s did not stop cleanly: %v; let go of hanging handlers before the test ends", c.name, err)
		}
	}
	b.mu.Lock()
	ended := b.ended
	b.mu.Unlock()
	for _, c := range ended {
		<-c.done
	}
	if err := b.closeAll(); err != nil {
		b.t.Errorf("jobtest: close broker and stores: %v", err)
	}
}

// closeAll closes what open has opened.
func (b *Bench) closeAll() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// Client returns a client for code under test that enqueues jobs by itself, for example a handler.
func (b *Bench) Client() *worker.Client { return b.client }

// Broker returns the broker as producers see it: what is published through it counts as enqueued, and [Bench.Break] breaks it.
func (b *Bench) Broker() queue.Broker {
	return &faultyBroker{Broker: b.broker, bench: b, producer: true}
}

// Claims returns the store of claims, below all faults. It is there also on an Unkeyed bench, where nobody uses it.
func (b *Bench) Claims() idempotency.Store { return b.claims }

// DeadLetters returns the store of dead letters, below all faults.
func (b *Bench) DeadLetters() dlq.Store { return b.dead }

// Worker returns the worker that was started last, to look at or to steer.
func (b *Bench) Worker() *worker.Worker {
	b.t.Helper()
	live := b.live()
	if len(live) == 0 {
		b.t.Fatal("jobtest: no worker runs; start one with StartWorker or Restart")
	}
	return live[len(live)-1].worker
}

func (b *Bench) live() []*process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*process(nil), b.running...)
}

// must ends the test on an error of the bench's own machinery.
func (b *Bench) must(what string, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(fmt.Errorf("jobtest: %s: %w", what, err))
	}
}
