package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/worker"
)

// hangingStore is a store behind a network that swallows everything while hung is set: calls end with their contexts, not before.
type hangingStore struct {
	idempotency.Store
	hung atomic.Bool
}

func hang[T any](ctx context.Context, s *hangingStore, items []T, call func(context.Context, []T) []error) []error {
	if !s.hung.Load() {
		return call(ctx, items)
	}
	<-ctx.Done()
	errs := make([]error, len(items))
	for i := range errs {
		errs[i] = fmt.Errorf("%w: %w", idempotency.ErrUnavailable, ctx.Err())
	}
	return errs
}

func (s *hangingStore) Extend(ctx context.Context, exts []idempotency.Extension) []error {
	return hang(ctx, s, exts, s.Store.Extend)
}

func (s *hangingStore) Complete(ctx context.Context, comps []idempotency.Completion) []error {
	return hang(ctx, s, comps, s.Store.Complete)
}

func (s *hangingStore) Fail(ctx context.Context, fails []idempotency.Failure) []error {
	return hang(ctx, s, fails, s.Store.Fail)
}

// A store that does not answer must cost no lease: neither those of jobs that hang on it, nor those of jobs that have nothing to do with it.
func TestHangingStoreCostsNoLease(t *testing.T) {
	t.Parallel()
	const keyed, unkeyed = 150, 10
	registry := worker.NewRegistry()
	var calls atomic.Int64
	slow := func(context.Context, *worker.Job) error {
		calls.Add(1)
		time.Sleep(time.Minute)
		return nil
	}
	work(registry, "keyed", worker.KindConfig{Timeout: time.Hour}, slow)
	work(registry, "unkeyed", worker.KindConfig{Timeout: time.Hour, Keyed: new(false)}, slow)
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
		store := &hangingStore{Store: b.claims}
		b.start(worker.Config{Registry: registry, Concurrency: keyed + unkeyed, Store: store})
		for range keyed {
			b.enqueue(worker.NewJob{Kind: "keyed"})
		}
		for range unkeyed {
			b.enqueue(worker.NewJob{Kind: "unkeyed"})
		}
		b.after(time.Second)
		store.hung.Store(true)
		b.after(5 * time.Minute) // the handlers have ended; the keyed ones cannot be completed
		store.hung.Store(false)
		b.after(5 * time.Minute)
		if n := calls.Load(); n != keyed+unkeyed {
			t.Errorf("%d calls for %d jobs", n, keyed+unkeyed)
		}
		all := b.settled("")
		for _, s := range all {
			if s.SettleErr != nil || s.Outcome != worker.OutcomeSucceeded {
				t.Errorf("%s %s: %s, settled with %v", s.Kind, s.Job.ID, s.Outcome, s.SettleErr)
				break
			}
		}
		if len(all) != keyed+unkeyed {
			t.Errorf("%d settlements of %d jobs", len(all), keyed+unkeyed)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if err := b.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}
