package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// The dead letter of a job that expires between two attempts tells how many were spent, whoever counted them.
func TestExpiryTellsTheAttemptsThatWereSpent(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		registry := worker.NewRegistry()
		work(registry, "k", worker.KindConfig{Keyed: &keyed, MaxAge: time.Minute, Backoff: every(t, 40*time.Second)}, fails)
		inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
			id := b.enqueue(worker.NewJob{Kind: "k"})
			b.after(10 * time.Minute)
			e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
			if err != nil || e.Cause != dlq.CauseExpired || e.AttemptCount != 2 {
				t.Errorf("entry %+v, error %v", e, err)
			}
		})
	})
}

// A held job comes back as a new message, which says nothing of the attempts before: if its deadline passed meanwhile, its ledger is asked all the same.
func TestHeldJobThatExpiresKeepsItsHistory(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{}, func(context.Context, *worker.Job) error { return errors.New("first failure") })
	cfg := worker.Config{Registry: registry, Hold: worker.HoldConfig{After: new(time.Second), Interval: time.Second}}
	inBubble(t, cfg, func(b *bubble) {
		id := b.enqueue(worker.NewJob{Kind: "k", Destination: "d", Deadline: time.Now().Add(time.Hour)})
		b.after(time.Second)
		b.w.Destinations().Force("d", time.Now(), breaker.OverrideOpen)
		b.after(2 * time.Hour)
		if depth, err := b.dead.Depth(b.ctx); err != nil || len(depth.Held) != 1 {
			t.Fatalf("depth %+v, error %v", depth, err)
		}
		b.w.Destinations().Force("d", time.Now(), breaker.OverrideNone)
		b.after(time.Minute)
		e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
		if err != nil || e.Cause != dlq.CauseExpired || e.AttemptCount != 1 || len(e.Attempts) != 1 || e.Attempts[0].Error != "first failure" {
			t.Errorf("entry %+v, error %v", e, err)
		}
		rec, err := b.claims.Get(b.ctx, idempotency.Key{Scope: "k", Value: id})
		if err != nil || !rec.Closed {
			t.Errorf("the ledger is still open and would never expire: %+v, error %v", rec, err)
		}
	})
}

// A copy of a job that is done says so, however late it comes: it is no dead letter.
func TestExpiredCopyOfADoneJobIsADuplicate(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{MaxAge: time.Hour}, func(context.Context, *worker.Job) error { return nil })
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		m, err := queue.NewMessage(queue.Envelope{
			ID: "a", Kind: "k", EnqueuedAt: time.Now(), Deadline: time.Now().Add(time.Minute),
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.publish(m)
		b.after(2 * time.Minute)
		b.publish(m)
		b.after(time.Second)
		s := b.settled("a")
		if n, err := b.dead.Count(b.ctx, dlq.Filter{}); n != 0 || err != nil || len(s) != 2 || s[1].Outcome != worker.OutcomeDuplicate {
			t.Errorf("%d dead, error %v, settled %+v", n, err, s)
		}
	})
}
