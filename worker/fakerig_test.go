package worker_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// field is a worker on a fake networked broker, with claims and dead letters in memory, in virtual time.
type field struct {
	*bubble
	fake *fakeBroker
	log  *logLines
}

// fieldConfig is what a test wants of its field.
type fieldConfig struct {
	caps queue.Capabilities
	// unkeyed leaves the store for claims out, sink that for dead letters.
	unkeyed, sink bool
	worker        worker.Config
	// prepare is called before the worker starts.
	prepare func(f *field)
}

// inField runs do beside a running worker, then stops the worker and wants a clean end.
func inField(t *testing.T, cfg fieldConfig, do func(f *field)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &field{bubble: &bubble{rig: memoryRig(t), t: t, ended: make(chan error, 1), unkeyed: cfg.unkeyed}, fake: newFakeBroker(cfg.caps), log: &logLines{}}
		cfg.worker.Broker, cfg.worker.Logger = f.fake, slog.New(slog.NewTextHandler(f.log, nil))
		if cfg.worker.Hold.Interval == 0 { // days of virtual time are cheap as long as nobody asks a database each second
			cfg.worker.Hold.Interval, cfg.worker.CleanUpInterval = time.Minute, time.Hour
		}
		if cfg.sink {
			cfg.worker.DeadLetters = sink{f.dead}
		}
		if cfg.prepare != nil {
			cfg.prepare(f)
		}
		f.start(cfg.worker)
		do(f)
		if err := f.stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		if err := f.broker.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// sink hides that a store is one.
type sink struct{ to dlq.Sink }

func (s sink) Put(ctx context.Context, entries []dlq.Entry) []error { return s.to.Put(ctx, entries) }

// add enqueues jobs of one group.
func (f *field) add(group string, ids ...string) {
	f.t.Helper()
	client, err := worker.NewClient(worker.ClientConfig{Broker: f.fake})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := client.Enqueue(context.Background(), worker.NewJob{Kind: "job", ID: id, Destination: group}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// left is how many messages are in the queue.
func (f *field) left() int64 {
	d, err := f.fake.Depth(context.Background(), worker.DefaultQueue)
	if err != nil {
		f.t.Fatal(err)
	}
	return d.Ready.N
}

// entry returns the dead letter of one run.
func (f *field) entry(id string, run int) dlq.Entry {
	f.t.Helper()
	e, err := f.dead.Get(f.ctx, dlq.EntryID(id, run))
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// replay replays every dead letter.
func (f *field) replay() {
	f.t.Helper()
	r, err := replay.New(replay.Config{Store: f.dead, Broker: f.fake})
	if err != nil {
		f.t.Fatal(err)
	}
	if report, err := r.Run(f.ctx); err != nil || report.Replayed == 0 {
		f.t.Fatalf("replay: %+v, %v", report, err)
	}
}

// logLines collects what is logged.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// observerFunc is an observer that is a function.
type observerFunc func(worker.Event)

// Observe implements worker.Observer.
func (f observerFunc) Observe(e worker.Event) { f(e) }
