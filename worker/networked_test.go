package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
	"github.com/caisson-go/caisson/worker"
)

// What a networked broker cannot give is refused at the start, with the queue, the kind, the numbers and the way out.
func TestBrokerThatCannotServeIsRefused(t *testing.T) {
	t.Parallel()
	rig := memoryRig(t)
	t.Cleanup(func() {
		if err := rig.broker.Close(); err != nil {
			t.Error(err)
		}
	})
	fifo := queue.Capabilities{FIFO: true}
	block := []worker.QueueConfig{{Name: "q", BlockOnDead: true}}
	for name, tt := range map[string]struct {
		caps queue.Capabilities
		kind worker.KindConfig
		cfg  worker.Config
		want []string
	}{
		"FIFO without a store":         {fifo, worker.KindConfig{}, worker.Config{DeadLetters: rig.dead}, []string{`queue "default": is a FIFO queue and needs a store`}},
		"unkeyed kind on FIFO":         {fifo, worker.KindConfig{Keyed: new(false)}, worker.Config{Store: rig.claims, DeadLetters: rig.dead}, []string{`kind "job": has no idempotency keys`, `queue "default" is a FIFO queue`}},
		"block without FIFO":           {queue.Capabilities{}, worker.KindConfig{}, worker.Config{Store: rig.claims, DeadLetters: rig.dead, Queues: block}, []string{`queue "q": is no FIFO queue`}},
		"block without a letter store": {fifo, worker.KindConfig{}, worker.Config{Store: rig.claims, DeadLetters: sink{rig.dead}, Queues: block}, []string{`queue "q": a blocked group waits`}},
		"timeout above the lease": {
			queue.Capabilities{MaxLease: 29 * time.Minute},
			worker.KindConfig{Timeout: 29 * time.Minute, TimeoutGrace: 10 * time.Second},
			worker.Config{DeadLetters: rig.dead},
			[]string{`kind "job": timeout 29m0s and grace 10s make 29m10s`, `queue "default"`, "29m0s at most", "consumer_timeout"},
		},
	} {
		registry := worker.NewRegistry()
		work(registry, "job", tt.kind, fails)
		tt.cfg.Broker, tt.cfg.Registry = newFakeBroker(tt.caps), registry
		_, err := worker.New(tt.cfg)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %s", name, err, want)
			}
		}
	}
}

// D3: a message above the limit is set aside at once, with its size and the limit, and holds up nobody.
func TestTooLargeMessageIsSetAside(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{}, func(context.Context, *worker.Job) error { return nil })
	inField(t, fieldConfig{caps: queue.Capabilities{MaxBody: 1 << 20}, worker: worker.Config{Registry: registry}}, func(f *field) {
		m, err := queue.NewMessage(queue.Envelope{ID: "large", Kind: "job", EnqueuedAt: time.Now()}, make([]byte, 20<<20))
		if err != nil {
			t.Fatal(err)
		}
		f.fake.Publish(f.ctx, worker.DefaultQueue, []queue.Publication{{Message: m}})
		f.add("", "good")
		f.after(time.Second)
		e := f.entry("large", 0)
		if e.Cause != dlq.CauseTooLarge || !strings.Contains(e.Error, "20971520 bytes") || !strings.Contains(e.Error, "1048576") || len(e.Message.Body) != 20<<20 {
			t.Errorf("%s: %s, %d bytes kept", e.Cause, e.Error, len(e.Message.Body))
		}
		if good := f.settled("good"); len(f.settled("large")) != 1 || len(good) != 1 || good[0].Outcome != worker.OutcomeSucceeded {
			t.Errorf("the large one was settled %d times, the good one %+v", len(f.settled("large")), good)
		}
	})
}

// A worker starts before its broker does: it waits, says so once, is not ready, and works once it is there.
func TestWorkerWaitsForItsBroker(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{}, func(context.Context, *worker.Job) error { return nil })
	down := func(f *field) { f.fake.setDown(fmt.Errorf("no route: %w", queue.ErrUnavailable)) }
	cfg := fieldConfig{worker: worker.Config{Registry: registry}, prepare: down}
	inField(t, cfg, func(f *field) {
		f.after(time.Hour)
		if err := f.w.Ready(); err == nil || !strings.Contains(err.Error(), "no route") {
			t.Errorf("ready: %v", err)
		}
		f.fake.setDown(nil)
		f.after(10 * time.Second)
		f.add("", "a")
		f.after(time.Second)
		if err := f.w.Ready(); err != nil || len(f.settled("a")) != 1 {
			t.Errorf("ready: %v; settled %d", err, len(f.settled("a")))
		}
		if on, off := f.pauses(); on != 1 || off != 1 {
			t.Errorf("told %d times that it waits and %d times that it goes on", on, off)
		}
	})
	inField(t, cfg, func(f *field) { f.after(time.Minute) }) // a stop meanwhile is clean
}

func (b *bubble) pauses() (on, off int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if p, ok := e.(*worker.Paused); ok && p.Err != nil {
			on++
		} else if ok {
			off++
		}
	}
	return on, off
}

// A stop ends the subscriptions before it gives jobs back: a broker that pushes would hand them to the same worker again, and count that as
// an attempt. E1.
func TestStopUnsubscribesBeforeItReleases(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{MaxAttempts: 1}, func(ctx context.Context, _ *worker.Job) error {
		<-ctx.Done()
		return ctx.Err()
	})
	cfg := worker.Config{Registry: registry, Concurrency: 1, StopGrace: new(time.Second)}
	var fake *fakeBroker
	inField(t, fieldConfig{caps: queue.Capabilities{CountsAttempts: true}, unkeyed: true, worker: cfg}, func(f *field) {
		fake = f.fake
		f.add("", "a", "b")
		f.after(time.Second)
	})
	if n := len(fake.settled); n != 1 || fake.settled[0].Action != queue.ActionRelease || fake.early != 0 {
		t.Errorf("%d settlements %v, %d of them before the subscription ended", n, fake.settled, fake.early)
	}
}

// What no waiting can mend ends the worker.
func TestRefusedQueueEndsTheWorker(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{}, fails)
	synctest.Test(t, func(t *testing.T) {
		rig, fake := memoryRig(t), newFakeBroker(queue.Capabilities{})
		refused := errors.New("declared with other arguments")
		fake.setDown(refused)
		w, err := worker.New(worker.Config{Broker: fake, Registry: registry, DeadLetters: rig.dead})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(t.Context()); !errors.Is(err, refused) {
			t.Errorf("run: %v", err)
		}
		if err := rig.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What the broker finds wrong with a queue is logged, and stops nobody.
func TestFindingsAreLogged(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{MaxAttempts: 7, Timeout: time.Minute, MaxAge: time.Hour}, func(context.Context, *worker.Job) error { return nil })
	inspect := func(name string, use inspect.Use) ([]inspect.Finding, error) {
		return []inspect.Finding{
			{Queue: name, Severity: inspect.SeverityNote, What: "all in order"},
			{Queue: name, Severity: inspect.SeverityWarning, What: fmt.Sprintf("3 receives are fewer than %d attempts", use.MaxAttempts), Remedy: "raise maxReceiveCount"},
			{Queue: name, Severity: inspect.SeverityFault, What: fmt.Sprintf("%s %s", use.LongestRun, use.MaxAge)},
		}, errors.New("could not see everything")
	}
	cfg := fieldConfig{worker: worker.Config{Registry: registry}, prepare: func(f *field) { f.fake.inspect = inspect }}
	inField(t, cfg, func(f *field) {
		f.add("", "a")
		f.after(time.Second)
		log := f.log.String()
		for _, want := range []string{
			`level=WARN msg="queue inspected" queue=default severity=warning finding="3 receives are fewer than 7 attempts" remedy="raise maxReceiveCount"`,
			`level=ERROR msg="queue inspected" queue=default severity=fault finding="1m5s 1h0m0s"`, "could not see everything",
		} {
			if !strings.Contains(log, want) {
				t.Errorf("%s is missing in\n%s", want, log)
			}
		}
		if strings.Contains(log, "all in order") || len(f.settled("a")) != 1 {
			t.Errorf("settled %d; log:\n%s", len(f.settled("a")), log)
		}
	})
}

// With a sink alone jobs of a sick destination are put back, however long it takes, and run when it has recovered.
func TestSinkHoldsNothing(t *testing.T) {
	t.Parallel()
	registry := worker.NewRegistry()
	work(registry, "job", worker.KindConfig{}, func(context.Context, *worker.Job) error { return nil })
	cfg := worker.Config{Registry: registry, Hold: worker.HoldConfig{After: new(time.Second), Backlog: new(1), Interval: time.Second}}
	for name, c := range map[string]fieldConfig{
		"sink": {sink: true, worker: cfg},
		"FIFO": {caps: queue.Capabilities{FIFO: true}, worker: cfg}, // a held job would lose its place
	} {
		t.Run(name, func(t *testing.T) {
			inField(t, c, func(f *field) {
				f.w.Destinations().Force("d", time.Now(), breaker.OverrideOpen)
				f.add("d", "a", "b", "c")
				f.after(time.Hour)
				depth, err := f.dead.Depth(f.ctx)
				if err != nil || len(depth.Held)+len(depth.Dead) != 0 || f.left() != 3 {
					t.Fatalf("%+v, %v, %d messages", depth, err, f.left())
				}
				f.w.Destinations().Force("d", time.Now(), breaker.OverrideNone)
				f.after(time.Hour)
				if n := f.succeeded(); n != 3 || f.left() != 0 {
					t.Errorf("%d succeeded, %d messages are left", n, f.left())
				}
				if name == "sink" && !strings.Contains(f.log.String(), "none is held") {
					t.Error("the start does not say that no job is held")
				}
			})
		})
	}
}

// A charge is taken back only where the broker's count is the job's: it may cost a second message.
func TestOnlyUnkeyedJobsAreUncharged(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		registry := worker.NewRegistry()
		work(registry, "job", worker.KindConfig{Keyed: &keyed, MaxAttempts: 1}, func(_ context.Context, job *worker.Job) error {
			if job.DeliveryCount < 3 {
				return worker.Snooze(time.Second, "not yet")
			}
			return nil
		})
		inField(t, fieldConfig{caps: queue.Capabilities{CountsAttempts: true}, worker: worker.Config{Registry: registry}}, func(f *field) {
			f.add("", "a")
			f.after(time.Minute)
			settled, _ := f.fake.settlements()
			if len(settled) != 3 || settled[0].Uncharged != (!keyed) || settled[1].Uncharged != (!keyed) {
				t.Errorf("settlements: %+v", settled)
			}
			if s := f.settled("a"); s[len(s)-1].Outcome != worker.OutcomeSucceeded || s[len(s)-1].Job.Attempt != 1 {
				t.Errorf("ended as %s of attempt %d", s[len(s)-1].Outcome, s[len(s)-1].Job.Attempt)
			}
		})
	})
}
