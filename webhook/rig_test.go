package webhook

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// rig is a real worker with the webhook kind, on a broker, claims and dead letters in memory.
type rig struct {
	t      *testing.T
	broker *embedded.Broker
	claims *claimsqlite.Store
	dead   *dlqsqlite.Store
	client *worker.Client
	events chan worker.Settled
	opened chan breaker.Transition
}

func newRig(t *testing.T) *rig {
	t.Helper()
	ctx := context.Background()
	r := &rig{t: t, events: make(chan worker.Settled, 1000), opened: make(chan breaker.Transition, 100)}
	var err error
	if r.broker, err = embedded.Open(ctx, embedded.Config{Path: ":memory:"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.broker.Close() })
	if r.claims, err = claimsqlite.Open(ctx, claimsqlite.Config{Path: r.broker.Path()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.claims.Close() })
	if r.dead, err = dlqsqlite.Open(ctx, dlqsqlite.Config{Path: r.broker.Path()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.dead.Close() })
	if err := r.broker.CreateQueue(ctx, worker.DefaultQueue); err != nil {
		t.Fatal(err)
	}
	if r.client, err = worker.NewClient(worker.ClientConfig{Broker: r.broker}); err != nil {
		t.Fatal(err)
	}
	return r
}

// Observe implements worker.Observer.
func (r *rig) Observe(e worker.Event) {
	switch e := e.(type) {
	case *worker.Settled:
		r.events <- *e
	case *worker.BreakerChanged:
		r.opened <- e.Transition
	}
}

// running is a worker at work.
type running struct {
	*worker.Worker
	endpoints *Static
	stop      func()
}

// start runs a worker for endpoints until stop is called or the test ends.
func (r *rig) start(cfg Config, endpoints ...Endpoint) running {
	r.t.Helper()
	registry := worker.NewRegistry()
	known := static(r.t, endpoints...)
	cfg.Endpoints, cfg.Guard = known, localGuard(r.t)
	sender, err := NewSender(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	sender.Register(registry)
	registry.Configure(KindDeliver, func(k *worker.KindConfig) { k.MaxAttempts = 3 })
	overrides := make(map[string]pools.DestinationConfig)
	for _, e := range endpoints {
		d := e.DestinationConfig()
		d.DeferFloor, d.DeferCap = 10*time.Millisecond, 50*time.Millisecond
		overrides[e.ID] = d
	}
	w, err := worker.New(worker.Config{
		Broker: r.broker, Registry: registry, Store: r.claims, DeadLetters: r.dead, Concurrency: 10, Observers: []worker.Observer{r},
		Destinations: pools.DestinationsConfig{ByName: overrides}, Hold: worker.HoldConfig{Interval: 100 * time.Millisecond},
		StopGrace: new(time.Duration(0)), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("run: %v", err)
		}
		sender.Close()
	}
	r.t.Cleanup(stop)
	return running{w, known, stop}
}

func (r *rig) enqueue(jobs ...worker.NewJob) {
	r.t.Helper()
	for _, result := range r.client.EnqueueMany(r.t.Context(), jobs) {
		if result.Err != nil {
			r.t.Fatal(result.Err)
		}
	}
}

// await returns the next n settlements that pick says yes to.
func (r *rig) await(n int, pick func(worker.Settled) bool) []worker.Settled {
	r.t.Helper()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	var found []worker.Settled
	for len(found) < n {
		select {
		case e := <-r.events:
			if pick(e) {
				found = append(found, e)
			}
		case <-limit.C:
			r.t.Fatalf("%d settlements of %d came", len(found), n)
		}
	}
	return found
}

func any1(worker.Settled) bool { return true }

func outcome(o worker.Outcome) func(worker.Settled) bool {
	return func(e worker.Settled) bool { return e.Outcome == o }
}

// entries returns all dead letters.
func (r *rig) entries() []dlq.Entry {
	r.t.Helper()
	list, _, err := r.dead.List(r.t.Context(), dlq.Filter{}, "", 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// soon is a schedule that does not make tests wait.
func soon(t *testing.T) schedule.Backoff {
	t.Helper()
	p, err := schedule.Constant(time.Millisecond, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
