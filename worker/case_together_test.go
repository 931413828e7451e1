package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/caisson-go/caisson/idempotency"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/worker"
)

// countingClaims counts in which way claims are completed.
type countingClaims struct {
	*claimsqlite.Store
	alone, together atomic.Int64
}

func (c *countingClaims) Complete(ctx context.Context, comps []idempotency.Completion) []error {
	c.alone.Add(1)
	return c.Store.Complete(ctx, comps)
}

func (c *countingClaims) InTx(ctx context.Context, comp idempotency.Completion, fn func(context.Context, any) error) error {
	c.together.Add(1)
	return c.Store.InTx(ctx, comp, fn)
}

// Where queue and claims share a file, a job's completion and its ack are one transaction.
func TestCompletionAndAckAreOneTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := memoryRig(t)
		store, err := claimsqlite.Open(t.Context(), claimsqlite.Config{Path: r.broker.Path()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		registry := worker.NewRegistry()
		work(registry, "job", worker.KindConfig{}, func(context.Context, *worker.Job) error { return nil })
		counting := &countingClaims{Store: store}
		b := &bubble{rig: r, t: t, ended: make(chan error, 1)}
		b.start(worker.Config{Registry: registry, Store: counting})
		if _, err := r.client(t).Enqueue(t.Context(), worker.NewJob{Kind: "job", ID: "j"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := b.settled("j"); len(s) != 1 || s[0].Outcome != worker.OutcomeSucceeded {
			t.Errorf("settled %d times", len(s))
		}
		if counting.together.Load() != 1 || counting.alone.Load() != 0 {
			t.Errorf("completed %d times with the ack and %d times alone", counting.together.Load(), counting.alone.Load())
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if err := r.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}
