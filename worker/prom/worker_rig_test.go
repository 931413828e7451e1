package prom

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// rig is a worker on real stores in memory, with an observer that asks them. It lives in a synctest bubble.
type rig struct {
	broker *embedded.Broker
	claims idempotency.Store
	dead   dlq.Store
	cfg    Config
}

func newRig(t *testing.T) *rig {
	t.Helper()
	broker, err := embedded.Open(t.Context(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	claims, err := sqlite.Open(t.Context(), sqlite.Config{Path: broker.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = claims.Close() })
	dead, err := dlqsqlite.Open(t.Context(), dlqsqlite.Config{Path: broker.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dead.Close() })
	return &rig{broker: broker, claims: claims, dead: dead, cfg: Config{Broker: broker, Store: claims, DeadLetters: dead}}
}

// start runs a worker until the test ends.
func (r *rig) start(t *testing.T, o *Observer, cfg worker.Config) *worker.Worker {
	t.Helper()
	cfg.Broker, cfg.Store, cfg.DeadLetters, cfg.Observers = r.broker, r.claims, r.dead, []worker.Observer{o}
	w, err := worker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	o.Attach(w)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return w
}

func (r *rig) enqueue(t *testing.T, jobs ...worker.NewJob) {
	t.Helper()
	client, err := worker.NewClient(worker.ClientConfig{Broker: r.broker})
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range client.EnqueueMany(t.Context(), jobs) {
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}
}

var errNotToday = errors.New("not today")

// mailRegistry has the kind mail; its jobs are rejected where the destination is "broken".
func mailRegistry() *worker.Registry {
	r := worker.NewRegistry()
	worker.Handle(r, worker.Kind[[]byte]{Name: "mail", Config: worker.KindConfig{Bulkhead: 4, MaxAttempts: 1}},
		func(ctx context.Context, _ []byte) error {
			if job := worker.JobFrom(ctx); job.Destination == "broken" {
				return worker.Cancel(fmt.Errorf("job %s to https://%s/?key=%s: %w", job.ID, job.Destination, job.Key, errNotToday))
			}
			return nil
		})
	return r
}
