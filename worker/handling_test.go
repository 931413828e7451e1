package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/worker"
)

// A lease that is lost cancels a handler without a claim, whose job may start elsewhere now, and leaves one with a claim alone.
func TestLostLeaseCancelsOnlyUnkeyedHandlers(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		var causes []error
		registry := worker.NewRegistry()
		work(registry, "k", worker.KindConfig{Keyed: &keyed, Timeout: time.Hour}, func(ctx context.Context, _ *worker.Job) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			causes = append(causes, context.Cause(ctx))
			return ctx.Err()
		})
		synctest.Test(t, func(t *testing.T) {
			b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
			broker := queuetest.NewFaultBroker(b.broker, queuetest.Script(queuetest.OpExtend, queuetest.Fault{Expire: true}))
			b.start(worker.Config{Registry: registry, Broker: broker, Concurrency: 1}) // the second attempt follows in the same slot
			id := b.enqueue(worker.NewJob{Kind: "k"})
			b.after(5 * time.Minute)
			s := b.settled(id)
			last := s[len(s)-1]
			switch {
			case keyed && (len(causes) != 1 || causes[0] != nil || last.Outcome != worker.OutcomeDuplicate):
				t.Errorf("keyed: causes %v, ended as %s", causes, last.Outcome)
			case !keyed && (len(causes) != 2 || !errors.Is(causes[0], worker.ErrLeaseLost) || causes[1] != nil || last.Outcome != worker.OutcomeSucceeded):
				t.Errorf("unkeyed: causes %v, ended as %s", causes, last.Outcome)
			}
			if err := b.stop(); err != nil {
				t.Error(err)
			}
			if err := b.broker.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// The handler's context ends with the job's deadline if that comes before the timeout.
func TestContextEndsWithTheDeadline(t *testing.T) {
	t.Parallel()
	var ended time.Time
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{Timeout: time.Hour}, func(ctx context.Context, _ *worker.Job) error {
		<-ctx.Done()
		ended = time.Now()
		return ctx.Err()
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		deadline := time.Now().Add(10 * time.Minute)
		b.enqueue(worker.NewJob{Kind: "k", Deadline: deadline})
		b.after(2 * time.Hour)
		if !ended.Equal(deadline) {
			t.Errorf("context ended at %s, deadline %s", ended, deadline)
		}
	})
}

// A handler's context ends when it returns, for what it has left running, and that of the next job in its slot does not.
func TestContextEndsWithTheHandler(t *testing.T) {
	t.Parallel()
	var contexts []context.Context
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{}, func(ctx context.Context, _ *worker.Job) error {
		for _, earlier := range contexts {
			if err := earlier.Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("context of a handler that has returned: %v", err)
			}
		}
		contexts = append(contexts, ctx)
		return context.Cause(ctx)
	})
	inBubble(t, worker.Config{Registry: registry, Concurrency: 1}, func(b *bubble) {
		var ids []string
		for range 3 {
			ids = append(ids, b.enqueue(worker.NewJob{Kind: "k"}))
		}
		b.after(time.Minute)
		for _, id := range ids {
			if s := b.settled(id); len(s) != 1 || s[0].Outcome != worker.OutcomeSucceeded {
				t.Errorf("settled %+v", s)
			}
		}
	})
}

// A handler that succeeds after it was abandoned has done the work: no other attempt is made.
func TestLateSuccessCompletesTheKey(t *testing.T) {
	t.Parallel()
	calls := 0
	registry := worker.NewRegistry()
	cfg := worker.KindConfig{Timeout: time.Second, TimeoutGrace: time.Second, Backoff: every(t, time.Minute)}
	work(registry, "k", cfg, func(context.Context, *worker.Job) error {
		calls++
		time.Sleep(10 * time.Second)
		return nil
	})
	inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
		id := b.enqueue(worker.NewJob{Kind: "k"})
		b.after(10 * time.Minute)
		if s := b.settled(id); calls != 1 || len(s) != 2 || s[0].Outcome != worker.OutcomeFailed || s[1].Outcome != worker.OutcomeDuplicate {
			t.Errorf("%d calls, settled %+v", calls, s)
		}
	})
}

// A stop waits for handlers to the end of its own patience, not to that of their timeouts.
func TestStopWaitsForHandlersToReturn(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{TimeoutGrace: time.Second}, func(ctx context.Context, _ *worker.Job) error {
		<-ctx.Done()
		time.Sleep(10 * time.Second)
		return ctx.Err()
	})
	cfg := worker.Config{Registry: registry, StopGrace: new(time.Duration(0)), StopHard: new(20 * time.Second)}
	inBubble(t, cfg, func(b *bubble) { // wants a clean end
		b.enqueue(worker.NewJob{Kind: "k"})
		b.after(time.Second)
	})
}

// A handler that never returns holds the stop for grace and hard limit; then Run names its job, which is free for others, unspent.
func TestStopAbandonsDeafHandlers(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		release := make(chan struct{})
		registry := worker.NewRegistry()
		var attempts []int
		work(registry, "k", worker.KindConfig{Keyed: &keyed, Timeout: time.Hour}, func(_ context.Context, job *worker.Job) error {
			if attempts = append(attempts, job.Attempt); len(attempts) == 1 {
				<-release
			}
			return nil
		})
		synctest.Test(t, func(t *testing.T) {
			release = make(chan struct{})
			b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
			cfg := worker.Config{Registry: registry, StopGrace: new(3 * time.Second), StopHard: new(2 * time.Second)}
			b.start(cfg)
			id := b.enqueue(worker.NewJob{Kind: "k"})
			b.after(time.Second)
			start := time.Now()
			err := b.stop()
			var abandoned *worker.AbandonedError
			if !errors.As(err, &abandoned) || len(abandoned.Jobs) != 1 || abandoned.Jobs[0].ID != id {
				t.Errorf("run: %v", err)
			}
			if d := time.Since(start); d < 5*time.Second || d > 6*time.Second {
				t.Errorf("the stop took %s, grace and hard limit are 5 s", d)
			}
			b.start(cfg)
			b.after(time.Second)
			if len(attempts) != 2 || attempts[1] != 1 {
				t.Errorf("attempts %v, want the second worker to run attempt 1 at once", attempts)
			}
			close(release)
			if err := b.stop(); err != nil {
				t.Error(err)
			}
			if err := b.broker.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// A broker that is closed under a worker ends Run with the reason.
func TestClosedBrokerEndsTheRun(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{}, fails)
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
		b.start(worker.Config{Registry: registry})
		if err := b.broker.Close(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-b.ended:
			if !errors.Is(err, queue.ErrClosed) {
				t.Errorf("run: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("still running a minute after its broker was closed")
			if err := b.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}
