package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/worker"
)

// downStore refuses writes while it is down.
type downStore struct {
	idempotency.Store
	down   atomic.Bool
	claims atomic.Int64
}

func (s *downStore) err() error {
	if s.down.Load() {
		return fmt.Errorf("%w: read-only", idempotency.ErrUnavailable)
	}
	return nil
}

func (s *downStore) Ping(context.Context) error { return s.err() }

func (s *downStore) Claim(ctx context.Context, reqs []idempotency.Request) []idempotency.Claim {
	s.claims.Add(1)
	if err := s.err(); err != nil {
		return []idempotency.Claim{{Err: err}}
	}
	return s.Store.Claim(ctx, reqs)
}

// A store that is away costs only the jobs that need it: keyed handlers are not called and nothing dies, unkeyed jobs go on and die of
// their own count.
func TestStoreOutageCostsOnlyKeyedJobs(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	ran := make(map[string]int)
	worker.Handle(registry, worker.Kind[[]byte]{Name: "keyed"}, func(context.Context, []byte) error {
		ran["keyed"]++
		return nil
	})
	unkeyed := worker.Kind[[]byte]{Name: "unkeyed", Config: worker.KindConfig{Keyed: new(false), MaxAttempts: 3}}
	worker.Handle(registry, unkeyed, func(context.Context, []byte) error {
		ran["unkeyed"]++
		return errors.New("always")
	})
	store := &downStore{}
	store.down.Store(true)
	inBubble(t, worker.Config{Registry: registry, Store: store}, func(b *bubble) {
		store.Store = b.claims
		keyed := b.enqueue(worker.NewJob{Kind: "keyed"})
		b.enqueue(worker.NewJob{Kind: "unkeyed"})
		b.after(30 * time.Minute)
		if ran["keyed"] != 0 || ran["unkeyed"] != 3 {
			t.Errorf("during the outage: %v", ran)
		}
		if n := len(b.settled(keyed)); n > 40 {
			t.Errorf("the keyed job was put back %d times in half an hour", n)
		}
		if n := store.claims.Load(); n > 2 {
			t.Errorf("a store that is down was asked for claims %d times", n)
		}
		depth, err := b.dead.Depth(b.ctx)
		if err != nil || len(depth.Dead) != 1 || depth.Dead[0].Count != 1 {
			t.Errorf("dead letters %+v, error %v; want the unkeyed job alone", depth, err)
		}
		store.down.Store(false)
		b.after(2 * time.Minute)
		if ran["keyed"] != 1 {
			t.Errorf("after the outage: %v", ran)
		}
	})
}
