package worker_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// However far away a handler puts its job, it comes back no later than when it expires, so that somebody hears of it.
func TestHugeDelaysEndWithTheJob(t *testing.T) {
	t.Parallel()
	const forever = time.Duration(math.MaxInt64)
	for name, answer := range map[string]error{
		"snooze":      worker.Snooze(forever, "some day"),
		"retry after": worker.RetryAfter(forever, nil),
		"gate":        &worker.Error{Outcome: worker.OutcomeFailed, After: forever, Throttle: forever},
	} {
		t.Run(name, func(t *testing.T) {
			forms(t, func(t *testing.T, keyed bool) {
				registry := worker.NewRegistry()
				calls := 0
				work(registry, "k", worker.KindConfig{Keyed: &keyed, MaxAge: 20 * time.Minute}, func(context.Context, *worker.Job) error {
					calls++
					return answer
				})
				inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
					id := b.enqueue(worker.NewJob{Kind: "k"})
					b.after(19 * time.Minute)
					if n, err := b.dead.Count(b.ctx, dlq.Filter{}); n != 0 || err != nil || calls != 1 {
						t.Errorf("%d dead, error %v, %d calls before the job expires", n, err, calls)
					}
					b.after(10 * time.Minute)
					e, err := b.dead.Get(b.ctx, dlq.EntryID(id, 0))
					if err != nil || e.Cause != dlq.CauseExpired || calls != 1 {
						t.Errorf("%d calls, entry %+v, error %v", calls, e, err)
					}
				})
			})
		})
	}
}

// Negative delays are none.
func TestNegativeDelays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer error
		after  time.Duration
	}{
		"snooze":      {worker.Snooze(-time.Hour, ""), time.Second},
		"retry after": {worker.RetryAfter(-time.Hour, errBoom), time.Minute},
		"gate":        {&worker.Error{Outcome: worker.OutcomeFailed, Err: errBoom, After: -1, Throttle: -time.Hour}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []time.Time
			registry := worker.NewRegistry()
			work(registry, "k", worker.KindConfig{Destination: "d", Backoff: every(t, time.Minute)}, func(context.Context, *worker.Job) error {
				if ran = append(ran, time.Now()); len(ran) == 1 {
					return c.answer
				}
				return nil
			})
			inBubble(t, worker.Config{Registry: registry}, func(b *bubble) {
				b.enqueue(worker.NewJob{Kind: "k"})
				b.after(time.Hour)
				if len(ran) != 2 {
					t.Fatalf("ran %v", ran)
				}
				if d := ran[1].Sub(ran[0]); d < c.after || d > 2*c.after {
					t.Errorf("came back after %s", d)
				}
			})
		})
	}
}

// shortDelays is a broker that can hide a message for ten seconds and no longer.
type shortDelays struct {
	queue.Broker
	refused *atomic.Int64
}

const shortest = 10 * time.Second

func (b shortDelays) Capabilities(name string) queue.Capabilities {
	c := b.Broker.Capabilities(name)
	c.MaxDelay, c.MaxRetryDelay = shortest, shortest
	return c
}

func (b shortDelays) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	for _, p := range pubs {
		if p.Delay > shortest {
			b.refused.Add(1)
		}
	}
	return b.Broker.Publish(ctx, name, pubs)
}

func (b shortDelays) Subscribe(ctx context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	sub, err := b.Broker.Subscribe(ctx, name, cfg)
	return shortSubscription{sub, b.refused}, err
}

type shortSubscription struct {
	queue.Subscription
	refused *atomic.Int64
}

func (s shortSubscription) Receive(ctx context.Context, n int) ([]*queue.Lease, error) {
	leases, err := s.Subscription.Receive(ctx, n)
	for _, l := range leases {
		l.Decorate(func(h queue.Handle) queue.Handle { return shortHandle{h, s.refused} })
	}
	return leases, err
}

type shortHandle struct {
	queue.Handle
	refused *atomic.Int64
}

func (h shortHandle) Settle(ctx context.Context, s queue.Settlement) error {
	if s.Delay > shortest {
		h.refused.Add(1)
	}
	return h.Handle.Settle(ctx, s)
}

// Where a broker's longest delay is short, the ledger and the envelope carry the rest.
func TestDelaysBeyondTheBrokersLongest(t *testing.T) {
	t.Parallel()
	var ran []time.Time
	registry := worker.NewRegistry()
	work(registry, "k", worker.KindConfig{Backoff: every(t, 5*time.Minute)}, func(_ context.Context, job *worker.Job) error {
		ran = append(ran, time.Now())
		if job.Attempt == 1 {
			return errBoom
		}
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1)}
		broker := shortDelays{b.broker, new(atomic.Int64)}
		b.start(worker.Config{Registry: registry, Broker: broker})
		client, err := worker.NewClient(worker.ClientConfig{Broker: broker})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := client.Enqueue(context.Background(), worker.NewJob{Kind: "k", Delay: time.Minute}); err != nil {
			t.Error(err)
		}
		b.after(time.Hour)
		if len(ran) != 2 || ran[0].Sub(start) < time.Minute || ran[1].Sub(ran[0]) < 5*time.Minute {
			t.Errorf("ran at %v", ran)
		}
		if n := broker.refused.Load(); n > 0 {
			t.Errorf("%d delays were longer than the broker can", n)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if err := b.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}
