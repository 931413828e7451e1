package runtime

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/fleet"
	fleetpostgres "github.com/caisson-go/caisson/internal/fleet/postgres"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/limiter"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/worker"
)

// sharer is a worker with a queue of its own, whose destinations are shared, and what tells it that they are sick.
type sharer struct {
	*worker.Worker
	client *worker.Client
	sick   atomic.Bool
	calls  atomic.Int32
}

func newSharer(t *testing.T, owner string, statuses fleet.StatusStore) *sharer {
	t.Helper()
	broker, err := embedded.Open(t.Context(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	letters, err := dlqsqlite.Open(t.Context(), dlqsqlite.Config{Path: broker.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = letters.Close() })
	s := &sharer{}
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[[]byte]{Name: "call", Config: worker.KindConfig{Keyed: new(false)}}, func(context.Context, []byte) error {
		s.calls.Add(1)
		if s.sick.Load() {
			return errors.New("down")
		}
		return nil
	})
	s.Worker, err = worker.New(worker.Config{
		Broker: broker, Registry: registry, DeadLetters: letters, Owner: owner,
		Destinations: pools.DestinationsConfig{Default: pools.DestinationConfig{
			Shared: new(true), Rate: limiter.Config{Rate: new(1000.0)}, Breaker: breaker.Config{MinimumCalls: 2, OpenFor: time.Minute},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.client, err = worker.NewClient(worker.ClientConfig{Broker: broker}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	reports := startReports(ctx, statuses, "embedded", s.Worker, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		reports()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	eventually.True(t, "ready", func() bool { return s.Ready() == nil })
	return s
}

func (s *sharer) enqueue(t *testing.T, n int) {
	t.Helper()
	for range n {
		if _, err := s.client.Enqueue(t.Context(), worker.NewJob{Kind: "call", Destination: "api"}); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *sharer) peek() pools.Verdict {
	return s.Destinations().Peek(time.Now(), pools.Request{Destination: "api"})
}

// TestWorkersShareWhatTheyKnow: of two workers on one status store, the one that has seen nothing waits while the breaker of the other is open, both
// divide the rate, and each is on its own again when the status store is away.
func TestWorkersShareWhatTheyKnow(t *testing.T) {
	t.Parallel()
	direct, schema := testserver.Schema(t)
	target, err := url.Parse(testserver.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := testserver.StartProxy(t, target.Host)
	pool, err := pgdb.Open(t.Context(), pgdb.Config{URL: proxy.URL(target.String()), ConnectTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	a := newSharer(t, "a", fleetpostgres.New(direct, fleetpostgres.Config{Schema: schema}))
	b := newSharer(t, "b", fleetpostgres.New(pool, fleetpostgres.Config{Schema: schema}))
	a.enqueue(t, 1)
	b.enqueue(t, 1)
	users := func(s *sharer) int {
		d, _ := s.Destinations().Lookup("api", time.Now())
		return d.Users
	}
	eventually.True(t, "both know of each other", func() bool { return users(a) == 2 && users(b) == 2 })

	a.sick.Store(true)
	a.enqueue(t, 2)
	eventually.True(t, "the breaker of a is open", func() bool { return a.peek().Reason == pools.ReasonBreakerOpen })
	eventually.True(t, "b has heard of it", func() bool { return b.peek().Reason == pools.ReasonSharedOpen })
	if wait := b.peek().Wait; wait < 30*time.Second || wait > 72*time.Second {
		t.Errorf("b waits for %s, where a waits for %s", wait, a.peek().Wait)
	}
	before := b.calls.Load()
	b.enqueue(t, 3)
	eventually.True(t, "b has put its jobs back", func() bool {
		d, _ := b.Destinations().Lookup("api", time.Now())
		return d.Waiting > 0
	})
	if got := b.calls.Load(); got != before {
		t.Errorf("b made %d calls that it could have spared", got-before)
	}
	if s, _ := b.Destinations().Lookup("api", time.Now()); s.State != breaker.StateClosed {
		t.Errorf("the breaker of b is %s", s.State)
	}
	a.Destinations().Reset("api", time.Now())
	eventually.True(t, "b is free with a", func() bool { return b.peek().OK() })

	proxy.Cut()
	eventually.True(t, "b is on its own without the status store", func() bool { return users(b) == 0 })
	eventually.True(t, "a notices that b is gone", func() bool { return users(a) == 0 })
	if !b.peek().OK() {
		t.Errorf("b: %+v", b.peek())
	}
}
