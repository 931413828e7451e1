package brokerdlq_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/queue"
)

func newMirror(t *testing.T, cfg brokerdlq.MirrorConfig) *brokerdlq.Mirror {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Store == nil {
		cfg.Store = newStore(t)
	}
	m, err := brokerdlq.NewMirror(cfg)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, m)
	return m
}

// hanging is a broker that takes no message until a context ends.
type hanging struct{ queue.Broker }

func (hanging) Publish(ctx context.Context, _ string, pubs []queue.Publication) []queue.PublishResult {
	<-ctx.Done()
	results := make([]queue.PublishResult, len(pubs))
	for i := range results {
		results[i].Err = ctx.Err()
	}
	return results
}

// A broker that hangs neither fails nor delays a move: what cannot wait is dropped, and both are counted and told.
func TestMirrorNeverHoldsUpAMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, letters := setUp(t, func(b queue.Broker) queue.Broker { return hanging{b} }, brokerdlq.Config{})
		var log strings.Builder
		m := newMirror(t, brokerdlq.MirrorConfig{Queues: letters, Waiting: 4, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		start := time.Now()
		put := func(entries ...dlq.Entry) {
			if err := errors.Join(m.Put(t.Context(), entries)...); err != nil {
				t.Error(err)
			}
		}
		all := jobs(t, 10)
		put(all[0])
		synctest.Wait() // it is in the broker's hands
		put(all[1:]...)
		if took := time.Since(start); took > 0 {
			t.Errorf("the moves took %v", took)
		}
		if n, err := m.Count(t.Context(), dlq.Filter{}); n != 10 || err != nil {
			t.Errorf("%d entries in the store, %v", n, err)
		}
		time.Sleep(time.Minute)
		if s := m.Stats(); s != (brokerdlq.MirrorStats{Failed: 5, Dropped: 5}) {
			t.Errorf("%+v", s)
		}
		if n := strings.Count(log.String(), "dlq.mirror"); n != 1 {
			t.Errorf("%d warnings, want one a minute:\n%s", n, &log)
		}
		start = time.Now()
		put(all[0])
		if err := m.Close(); err != nil || time.Since(start) > 10*time.Second {
			t.Errorf("closed after %v: %v", time.Since(start), err)
		}
		put(all[0]) // a store still
	})
}

// failing is a store that takes nothing.
type failing struct{ dlq.Store }

func (failing) Put(_ context.Context, entries []dlq.Entry) []error {
	errs := make([]error, len(entries))
	for i := range errs {
		errs[i] = dlq.ErrUnavailable
	}
	return errs
}

func TestMirrorCopiesOnlyWhatIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, letters := setUp(t, nil, brokerdlq.Config{})
		m := newMirror(t, brokerdlq.MirrorConfig{Store: failing{newStore(t)}, Queues: letters})
		for _, err := range m.Put(t.Context(), jobs(t, 2)) {
			if !errors.Is(err, dlq.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Depth(t.Context(), queue.DLQ("q")); !errors.Is(err, queue.ErrQueueNotFound) {
			t.Errorf("depth: %v", err)
		}
	})
}

func TestMirrorIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, letters := setUp(t, nil, brokerdlq.Config{})
		m := newMirror(t, brokerdlq.MirrorConfig{Queues: letters, Most: 3})
		for _, e := range jobs(t, 5) {
			if err := errors.Join(m.Put(t.Context(), []dlq.Entry{e})...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second) // counts lag
		}
		if s := m.Stats(); s != (brokerdlq.MirrorStats{Copied: 3, Dropped: 2}) {
			t.Errorf("%+v", s)
		}
		if got := takeAll(t, b, queue.DLQ("q")); len(got) != 3 {
			t.Errorf("%d copies", len(got))
		}
	})
}

// A copy whose metadata finds no room at all would be taken for a dead letter: there is none then.
func TestMirrorMakesNoUnmarkedCopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refuse := func(b queue.Broker) queue.Broker { return noHeader{b} }
		b, letters := setUp(t, refuse, brokerdlq.Config{})
		m := newMirror(t, brokerdlq.MirrorConfig{Queues: letters})
		long := deadJob(t, "long", "q", 1)
		long.Group = strings.Repeat("g", 20<<10)
		if err := errors.Join(m.Put(t.Context(), append(jobs(t, 1), long))...); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if s := m.Stats(); s != (brokerdlq.MirrorStats{Failed: 2}) {
			t.Errorf("%+v", s)
		}
		if err := b.CreateQueue(t.Context(), queue.DLQ("q")); err != nil {
			t.Fatal(err)
		}
		if got := takeAll(t, b, queue.DLQ("q")); len(got) != 0 {
			t.Errorf("%d copies", len(got))
		}
	})
}

// noHeader takes no message with metadata.
type noHeader struct{ queue.Broker }

func (n noHeader) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	results := make([]queue.PublishResult, len(pubs))
	for i, p := range pubs {
		if _, dead := p.Headers[brokerdlq.HeaderDead]; dead {
			results[i].Err = queue.ErrTooLarge
			continue
		}
		results[i] = n.Broker.Publish(ctx, name, []queue.Publication{p})[0]
	}
	return results
}

// A copy outlives its entry in a store that has lost it, or in another one: then it is all that is left of it.
func TestCopiesRestoreWhatTheStoreHasLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, letters := setUp(t, nil, brokerdlq.Config{Retention: 48 * time.Hour})
		m := newMirror(t, brokerdlq.MirrorConfig{Queues: letters})
		if err := errors.Join(m.Put(t.Context(), jobs(t, 3))...); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		sweep := func(store dlq.Store, want brokerdlq.ImportReport) {
			t.Helper()
			time.Sleep(2 * time.Second) // counts lag
			got, err := letters.Sweep(t.Context(), store)
			if got.ScanReport = (brokerdlq.ScanReport{}); got != want || err != nil {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		}
		fresh := newStore(t)
		sweep(fresh, brokerdlq.ImportReport{Restored: 3})
		sweep(fresh, brokerdlq.ImportReport{Mirrored: 3})
		e, err := fresh.Get(t.Context(), dlq.EntryID(jobs(t, 1)[0].Job, 0))
		if err != nil || len(e.Message.Body) == 0 {
			t.Errorf("restored %+v, %v", e, err)
		}
		time.Sleep(25 * time.Hour)
		sweep(newStore(t), brokerdlq.ImportReport{Outdated: 3}) // may have expired
		if got := takeAll(t, b, queue.DLQ("q")); len(got) != 0 {
			t.Errorf("%d copies left", len(got))
		}
	})
}

// Several workers sweep at once: everything is stored once, nothing is lost, and copies of dead entries stay.
func TestSweepsAtOnce(t *testing.T) {
	t.Parallel()
	b := inMemory(t)
	if err := b.CreateQueue(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	letters := func() *brokerdlq.Queues {
		q, err := brokerdlq.New(brokerdlq.Config{Broker: b, Idle: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	const n = 300
	store := newStore(t)
	put(t, letters(), jobs(t, n)...)
	m := newMirror(t, brokerdlq.MirrorConfig{Store: store, Queues: letters()})
	if err := errors.Join(m.Put(t.Context(), []dlq.Entry{deadJob(t, "copied", "q", 1)})...); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	var sweeping sync.WaitGroup
	for range 4 {
		sweeping.Go(func() {
			if _, err := letters().Sweep(t.Context(), store); err != nil {
				t.Error(err)
			}
		})
	}
	sweeping.Wait()
	// What one gave back may have come too late for the others.
	if _, err := letters().Import(t.Context(), store, dlq.Filter{}); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Count(t.Context(), dlq.Filter{}); got != n+1 || err != nil {
		t.Errorf("%d stored, %v; want %d", got, err, n+1)
	}
	if got := takeAll(t, b, queue.DLQ("q")); len(got) != 1 {
		t.Errorf("%d messages left in the broker, want the copy", len(got))
	}
}
