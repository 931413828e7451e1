package rabbitmq

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/internal/testkit/brokerdlqtest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
)

// newStore returns dead letters in PostgreSQL, as a fleet on a networked broker has them.
func newStore(t *testing.T) dlq.Store {
	pool, schema := testserver.Schema(t)
	store, err := postgres.New(pool, postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	brokerdlqtest.Run(t, brokerdlqtest.Harness{
		Broker: func(t *testing.T) queue.Broker {
			r := newRig(t)
			return r.open(r.config())
		},
		Queue: func(t *testing.T, b queue.Broker, base string) string {
			r := newRig(t)
			name := r.name(base)
			if err := b.CreateQueue(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			return name
		},
		Store: newStore,
		Idle:  500 * time.Millisecond,
	})
}

// What the broker gave up by itself comes into the store with its reason, its bytes and its headers, also when two sweep at once, and only
// then leaves the broker.
func TestSweepOfTheDeliveryLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.config()
	cfg.DeliveryLimit = 2
	b := r.open(cfg)
	name := r.queue(b, "limit")
	env := queue.Envelope{ID: "ours", Run: 1, Kind: "email.send", Key: "k", EnqueuedAt: time.Now().Add(-time.Hour)}
	ours, err := queue.NewMessage(env, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	foreign := queue.Message{Body: []byte{0xff, 0}, Headers: map[string]string{"theirs": "kept"}}
	r.publish(b, name, queue.Publication{Message: ours}, queue.Publication{Message: foreign})
	sub := r.subscribe(b, name, 30*time.Second, 1)
	for range 2 * (cfg.DeliveryLimit + 1) {
		if err := r.receive(sub).Settle(t.Context(), queue.Settlement{Action: queue.ActionRelease}); err != nil {
			t.Fatal(err)
		}
	}
	store := newStore(t)
	var swept, sweeping atomic.Int32
	for deadline := time.Now().Add(testTimeout); swept.Load() < 2 && time.Now().Before(deadline); {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				letters, err := brokerdlq.New(brokerdlq.Config{Broker: b, Queues: []string{name}, Idle: 500 * time.Millisecond})
				if err != nil {
					t.Error(err)
					return
				}
				report, err := letters.Sweep(t.Context(), store)
				if err != nil {
					t.Error(err)
				}
				swept.Add(int32(report.Imported)) //nolint:gosec // a handful
				sweeping.Add(1)
			})
		}
		both.Wait()
	}
	list, _, err := store.List(t.Context(), dlq.Filter{Cause: dlq.CauseBroker, Text: "delivery_limit"}, "", 10)
	if err != nil || len(list) != 2 || swept.Load() != 2 {
		t.Fatalf("%d entries after %d sweeps that imported %d, %v: %+v", len(list), sweeping.Load(), swept.Load(), err, list)
	}
	for _, e := range list {
		want := foreign
		if e.Job == "ours" {
			want = ours
			if e.Run != 1 || e.Kind != "email.send" || e.Queue != name {
				t.Errorf("%+v", e)
			}
		}
		got, err := store.Get(t.Context(), e.ID)
		if diff := cmp.Diff(want, got.Message); diff != "" || err != nil {
			t.Errorf("%s: %v (-sent +stored):\n%s", e.ID, err, diff)
		}
	}
	if d, err := b.Depth(t.Context(), queue.DLQ(name)); err != nil || d.Ready.N != 0 {
		t.Errorf("left in the broker: %+v, %v", d, err)
	}
}
