package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/worker"
)

// A worker removes ended keys and dead letters when their time is over, and not before.
func TestEndedRecordsAreRemovedInTime(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{MaxAge: time.Hour}, func(_ context.Context, job *worker.Job) error {
		if job.ID == "dead" {
			return worker.Cancel(errBoom)
		}
		return nil
	})
	cfg := worker.Config{Registry: registry, KeyRetention: 3 * time.Hour, DeadLetterRetention: 2 * time.Hour}
	inBubble(t, cfg, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "k", ID: "done"})
		b.enqueue(worker.NewJob{Kind: "k", ID: "dead"})
		has := func() (key, letter bool) {
			_, keyErr := b.claims.Get(b.ctx, idempotency.Key{Scope: "k", Value: "done"})
			_, letterErr := b.dead.Get(b.ctx, dlq.EntryID("dead", 0))
			return !errors.Is(keyErr, idempotency.ErrNotFound), !errors.Is(letterErr, dlq.ErrNotFound)
		}
		for _, c := range []struct {
			after       time.Duration
			key, letter bool
		}{{119 * time.Minute, true, true}, {10 * time.Minute, true, false}, {time.Hour, false, false}} {
			b.after(c.after)
			if key, letter := has(); key != c.key || letter != c.letter {
				t.Errorf("%s further: key is there: %t, dead letter: %t; want %t, %t", c.after, key, letter, c.key, c.letter)
			}
		}
	})
}
