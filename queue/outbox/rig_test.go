package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/schedule"
)

// testTimeout bounds what is waited for; no test expects anything to be quick.
const testTimeout = 2 * time.Minute

// rig is a schema, a box and a broker of one test.
type rig struct {
	testing.TB
	pool   *pgxpool.Pool
	schema string
	box    *Box
	broker queue.Broker
	names  func(base string) string
}

func newRig(t testing.TB, cfg pgdb.Config) *rig {
	t.Helper()
	if cfg.URL == "" {
		cfg.URL = testserver.Postgres(t)
	}
	r := &rig{TB: t}
	r.pool, r.schema = testserver.SchemaAt(t, cfg)
	r.box = r.newBox(Config{})
	r.names = func(base string) string { return base }
	return r
}

// newEmbedded is a rig with an embedded queue in a file.
func newEmbedded(t testing.TB) *rig {
	t.Helper()
	r := newRig(t, pgdb.Config{})
	r.broker = openEmbedded(t, filepath.Join(t.TempDir(), "queue.db"))
	return r
}

func openEmbedded(t testing.TB, path string) *embedded.Broker {
	t.Helper()
	b, err := embedded.Open(context.Background(), embedded.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (r *rig) newBox(cfg Config) *Box {
	r.Helper()
	cfg.Schema = r.schema
	b, err := New(cfg)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// queue makes a queue and returns its name.
func (r *rig) queue(base string) string {
	r.Helper()
	name := r.names(base)
	if err := r.broker.CreateQueue(r.Context(), name); err != nil {
		r.Fatal(err)
	}
	return name
}

func unique(base string) string { return "outbox-" + base + "-" + strings.ToLower(rand.Text()[:10]) }

// in runs do in a transaction and commits it.
func (r *rig) in(do func(tx pgx.Tx)) {
	r.Helper()
	err := pgx.BeginFunc(context.Background(), r.pool, func(tx pgx.Tx) error {
		do(tx)
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
}

// enqueue commits jobs in a transaction of their own.
func (r *rig) enqueue(jobs ...Job) (ids []int64) {
	r.Helper()
	r.in(func(tx pgx.Tx) {
		var err error
		if ids, err = r.box.Enqueue(context.Background(), tx, jobs...); err != nil {
			r.Fatal(err)
		}
	})
	return ids
}

// quickBackoff is one for tests that wait for further attempts.
func quickBackoff() schedule.Backoff {
	p, err := schedule.Constant(20*time.Millisecond, schedule.JitterNone)
	if err != nil {
		panic(err)
	}
	return p
}

// relay starts a relay, ended with the test or by the returned function.
func (r *rig) relay(cfg RelayConfig) (stop func()) {
	r.Helper()
	if cfg.Pool == nil {
		cfg.Pool = r.pool
	}
	if cfg.Broker == nil {
		cfg.Broker = r.broker
	}
	if cfg.Poll == 0 {
		cfg.Poll = 20 * time.Millisecond
	}
	if cfg.Backoff.IsZero() {
		cfg.Backoff = quickBackoff()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Schema = r.schema
	relay, err := NewRelay(cfg)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.Errorf("relay: %v", err)
		}
	})
	r.Cleanup(stop)
	return stop
}

// receive takes and acks n messages of a queue.
func (r *rig) receive(name string, n int) []*queue.Lease {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	sub, err := r.broker.Subscribe(ctx, name, queue.SubscribeConfig{Slots: 100})
	if err != nil {
		r.Fatal(err)
	}
	defer func() {
		if err := sub.Close(); err != nil {
			r.Error(err)
		}
	}()
	var got []*queue.Lease
	for len(got) < n {
		leases, err := sub.Receive(ctx, min(100, n-len(got)))
		if err != nil && !errors.Is(err, queue.ErrUnavailable) {
			r.Fatalf("%d of %d messages arrived in %q: %v", len(got), n, name, err)
		}
		for _, l := range leases {
			if err := l.Ack(ctx); err != nil {
				r.Fatal(err)
			}
		}
		got = append(got, leases...)
	}
	return got
}

// drained waits until all that was enqueued is published.
func (r *rig) drained() {
	r.Helper()
	r.until("the outbox is empty", func() bool { return r.stats().Pending() == 0 })
}

func (r *rig) stats() Stats {
	r.Helper()
	s, err := r.box.Stats(context.Background(), r.pool)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

func (r *rig) until(what string, is func() bool) {
	r.Helper()
	deadline := time.Now().Add(testTimeout)
	for !is() {
		if time.Now().After(deadline) {
			r.Fatalf("waited too long until %s: %+v", what, r.stats())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func text(queue, body string) Job {
	j := Job{Queue: queue}
	j.Body = []byte(body)
	return j
}

func bodies(leases []*queue.Lease) []string {
	var list []string
	for _, l := range leases {
		list = append(list, string(l.Body))
	}
	return list
}
