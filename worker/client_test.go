package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

func TestEnqueueRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rig := memoryRig(t)
		client := rig.client(t)
		now := time.Now()
		for name, c := range map[string]struct {
			job  worker.NewJob
			want string
		}{
			"no kind":               {worker.NewJob{}, "kind"},
			"delay and at":          {worker.NewJob{Kind: "k", Delay: 1, At: now}, "both delay and at"},
			"deadline passed":       {worker.NewJob{Kind: "k", Deadline: now.Add(-time.Second)}, "has passed"},
			"deadline before due":   {worker.NewJob{Kind: "k", Delay: time.Hour, Deadline: now.Add(time.Minute)}, "before the job is due"},
			"payload without JSON":  {worker.NewJob{Kind: "k", Payload: make(chan int)}, "encode payload"},
			"queue that is unknown": {worker.NewJob{Kind: "k", Queue: "nowhere"}, `queue "nowhere"`},
			"too large":             {worker.NewJob{Kind: "k", Payload: make([]byte, 17<<20)}, "exceeds the broker's limit"},
		} {
			if _, err := client.Enqueue(context.Background(), c.job); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if err := rig.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestEnqueueBatchFailsOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rig := memoryRig(t)
		results := rig.client(t).EnqueueMany(context.Background(), []worker.NewJob{
			{Kind: "k", ID: "a"}, {Kind: ""}, {Kind: "k", ID: "c", Queue: "nowhere"}, {Kind: "k"},
		})
		var got []string
		for _, r := range results {
			got = append(got, fmt.Sprintf("%s %t", r.Queue, r.Err == nil))
		}
		if diff := cmp.Diff([]string{"default true", "default false", "nowhere false", "default true"}, got); diff != "" {
			t.Error(diff)
		}
		if err := results[2].Err; err == nil || !strings.Contains(err.Error(), "create it") {
			t.Errorf("a missing queue: %v", err)
		}
		if !errors.Is(results[2].Err, queue.ErrQueueNotFound) || results[0].ID != "a" || results[3].ID == "" {
			t.Errorf("results %+v", results)
		}
		if err := rig.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDelayAtAndDeadline(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	ran := make(map[string]time.Duration)
	worker.Handle(registry, worker.Kind[[]byte]{Name: "k", Config: worker.KindConfig{MaxAge: time.Hour}}, func(ctx context.Context, _ []byte) error {
		job := worker.JobFrom(ctx)
		ran[job.ID] = time.Since(job.EnqueuedAt).Round(100 * time.Millisecond)
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		b.enqueue(worker.NewJob{Kind: "k", ID: "now"})
		b.enqueue(worker.NewJob{Kind: "k", ID: "delay", Delay: 90 * time.Second})
		b.enqueue(worker.NewJob{Kind: "k", ID: "at", At: time.Now().Add(2 * time.Hour)}) // above the max age, which counts from the due time
		b.enqueue(worker.NewJob{Kind: "k", ID: "past", At: time.Now().Add(-time.Hour)})
		b.after(3 * time.Hour)
		want := map[string]time.Duration{"now": 0, "delay": 90 * time.Second, "at": 2 * time.Hour, "past": 0}
		if diff := cmp.Diff(want, ran); diff != "" {
			t.Error(diff)
		}
	})
}

func TestJobsThatComeTooLateExpire(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	worker.Handle(registry, worker.Kind[[]byte]{Name: "k", Config: worker.KindConfig{MaxAge: time.Hour}}, nop)
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		if err := b.stop(); err != nil { // nobody works
			t.Fatal(err)
		}
		deadline := b.enqueue(worker.NewJob{Kind: "k", Deadline: time.Now().Add(time.Minute)})
		old := b.enqueue(worker.NewJob{Kind: "k"})
		time.Sleep(2 * time.Hour)
		b.start(worker.Config{Registry: registry})
		b.after(time.Second)
		for _, id := range []string{deadline, old} {
			if e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0)); err != nil || e.Cause != dlq.CauseExpired || e.AttemptCount != 0 {
				t.Errorf("entry %+v, error %v", e, err)
			}
		}
	})
}

// A job that failed, and whose time is over before its next try, takes its history to the dead letters and leaves its key free.
func TestExpiryAfterAFailureClosesTheRun(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	kind := worker.Kind[[]byte]{Name: "k"}
	worker.Handle(registry, kind, func(context.Context, []byte) error { return errors.New("first failure") })
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		id := b.enqueue(worker.NewJob{Kind: "k", ID: "a", Key: "same", Payload: []byte("1"), Deadline: time.Now().Add(10 * time.Second)})
		b.after(5 * time.Minute)
		e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
		if err != nil || e.Cause != dlq.CauseExpired || e.AttemptCount != 1 || len(e.Attempts) != 1 || e.Attempts[0].Error != "first failure" {
			t.Fatalf("entry %+v, error %v", e, err)
		}
		other := b.enqueue(worker.NewJob{Kind: "k", ID: "b", Key: "same", Payload: []byte("another payload")})
		b.after(time.Second)
		if s := b.settled(other); len(s) != 1 || s[0].Outcome != worker.OutcomeFailed {
			t.Errorf("the key is still bound: %+v", s)
		}
	})
}
