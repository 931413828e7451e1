package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/worker"
)

// awayWhile makes settlements fail while away is set.
func awayWhile(away *atomic.Bool) queuetest.Plan {
	return queuetest.When(queuetest.OpSettle, func(queuetest.Point) bool { return away.Load() }, queuetest.Fault{Before: queue.ErrUnavailable})
}

// An attempt whose handler was given up keeps its lease until it is settled, also if the handler returns while the broker is away.
func TestGivenUpAttemptKeepsItsLease(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		synctest.Test(t, func(t *testing.T) {
			var calls, away atomic.Bool
			again := 0
			registry := worker.NewRegistry()
			cfg := worker.KindConfig{Keyed: &keyed, Timeout: time.Second, TimeoutGrace: time.Second, MaxAttempts: 2, Backoff: every(t, time.Hour)}
			work(registry, "k", cfg, func(_ context.Context, job *worker.Job) error {
				if calls.Swap(true) {
					again++
					return nil
				}
				time.Sleep(10 * time.Second)
				return errBoom
			})
			b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
			b.start(worker.Config{Registry: registry, Broker: queuetest.NewFaultBroker(b.broker, awayWhile(&away))})
			away.Store(true)
			id := b.enqueue(worker.NewJob{Kind: "k"})
			b.after(10 * time.Minute)
			if n := b.w.Snapshot().InFlight; n != 1 {
				t.Errorf("%d leases are held while the broker cannot be told, want 1", n)
			}
			away.Store(false)
			b.after(10 * time.Minute)
			if s := b.settled(id); len(s) != 1 || s[0].Outcome != worker.OutcomeFailed || s[0].SettleErr != nil || again != 0 {
				t.Errorf("%d further calls within the delay of an hour, settled %+v", again, s)
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

// A stop waits for the settlement of an attempt whose handler was given up and has returned since.
func TestStopWaitsForGivenUpAttempts(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, keyed bool) {
		synctest.Test(t, func(t *testing.T) {
			var away atomic.Bool
			registry := worker.NewRegistry()
			cfg := worker.KindConfig{Keyed: &keyed, Timeout: time.Second, TimeoutGrace: time.Second, Backoff: every(t, time.Hour)}
			work(registry, "k", cfg, func(context.Context, *worker.Job) error {
				time.Sleep(10 * time.Second)
				return errBoom
			})
			b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
			b.start(worker.Config{Registry: registry, Broker: queuetest.NewFaultBroker(b.broker, awayWhile(&away))})
			away.Store(true)
			id := b.enqueue(worker.NewJob{Kind: "k"})
			b.after(time.Minute)
			b.stopRun()
			b.after(10 * time.Second)
			select {
			case err := <-b.ended:
				t.Errorf("run ended before its last settlement: %v", err)
				b.ended <- err
			default:
			}
			away.Store(false)
			if err := b.stop(); err != nil {
				t.Error(err)
			}
			if s := b.settled(id); len(s) != 1 || s[0].Outcome != worker.OutcomeFailed || s[0].SettleErr != nil {
				t.Errorf("settled %+v", s)
			}
			if err := b.broker.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// A broker that stays away holds the stop for its patience, whether it refuses or hangs, and whether the given up handler returns or not.
func TestStopDoesNotWaitForeverForGivenUpAttempts(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]queuetest.Fault{"refuses": {Before: queue.ErrUnavailable}, "hangs": {Delay: 24 * time.Hour}} {
		for lasts, stuck := range map[time.Duration]bool{10 * time.Second: false, 24 * time.Hour: true} {
			t.Run(name+", handler lasts "+lasts.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					registry := worker.NewRegistry()
					cfg := worker.KindConfig{Timeout: time.Second, TimeoutGrace: time.Second, Backoff: every(t, time.Hour)}
					work(registry, "k", cfg, func(context.Context, *worker.Job) error {
						time.Sleep(lasts)
						return errBoom
					})
					b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
					broker := queuetest.NewFaultBroker(b.broker, queuetest.When(queuetest.OpSettle, nil, fault))
					const grace, hard = 3 * time.Second, 2 * time.Second
					b.start(worker.Config{Registry: registry, Broker: broker, StopGrace: new(grace), StopHard: new(hard)})
					b.enqueue(worker.NewJob{Kind: "k"})
					b.after(time.Minute)
					start := time.Now()
					err := b.stop()
					var abandoned *worker.AbandonedError
					if errors.As(err, &abandoned) != stuck || !stuck && err != nil {
						t.Errorf("run: %v", err)
					}
					if took, limit := time.Since(start), grace+hard+2*time.Second; took > limit {
						t.Errorf("the stop took %s, want at most %s", took, limit)
					}
					b.after(48 * time.Hour)
					b.accounts()
					if err := b.broker.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
