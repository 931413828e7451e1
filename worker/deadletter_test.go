package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/worker"
)

// A job that was published twice under one id, with other bytes, must not take the first one's place in the dead letters.
func TestDeadLettersOfOneIDKeepBothPayloads(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{MaxAttempts: 2}, fails)
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		for _, payload := range []string{"first", "second"} {
			b.enqueue(worker.NewJob{Kind: "k", ID: "a", Payload: []byte(payload)})
			b.after(time.Second)
		}
		b.after(time.Hour)
		b.enqueue(worker.NewJob{Kind: "k", ID: "a", Payload: []byte("third")}) // the first has died meanwhile
		b.enqueue(worker.NewJob{Kind: "k", ID: "a", Payload: []byte("first")}) // a late copy of it
		b.after(time.Second)
		kept := make(map[string]dlq.Cause)
		entries, err := b.dead.Reserve(b.ctx, dlq.Filter{}, dlq.Reservation{Owner: "test", For: time.Minute, Limit: 10})
		for _, e := range entries {
			kept[string(e.Message.Body)] = e.Cause
		}
		want := map[string]dlq.Cause{"first": dlq.CauseExhausted, "second": dlq.CauseMismatch, "third": dlq.CauseMismatch}
		if diff := cmp.Diff(want, kept); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}

// Fewer attempts after a deploy do not make workers look lost that reported every one of them.
func TestLoweredMaxAttemptsIsNoLostWorker(t *testing.T) {
	t.Parallel()
	most := 5
	run := func(b *bubble) *worker.Registry {
		registry := worker.NewRegistry()
		work(registry, "k", worker.KindConfig{MaxAttempts: most, Backoff: every(b.t, time.Minute)}, func(_ context.Context, job *worker.Job) error {
			return fmt.Errorf("failure %d", job.Attempt)
		})
		return registry
	}
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
		b.start(worker.Config{Registry: run(b)})
		id := b.enqueue(worker.NewJob{Kind: "k"})
		b.after(150 * time.Second) // three attempts
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		most = 2
		b.start(worker.Config{Registry: run(b)})
		b.after(10 * time.Minute)
		e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
		if err != nil || e.Cause != dlq.CauseExhausted || e.AttemptCount != 3 || len(e.Attempts) != 3 || !strings.Contains(e.Error, "failure 3") {
			t.Errorf("entry %+v, error %v", e, err)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if err := b.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}
