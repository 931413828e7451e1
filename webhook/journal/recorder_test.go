package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

// run starts a recorder. stop ends it and waits.
func run(t *testing.T, cfg journal.RecorderConfig) (r *journal.Recorder, stop func()) {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	r, err := journal.NewRecorder(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return r, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

func attempt(n int) webhook.Attempt {
	return webhook.Attempt{
		Tenant: "default", Endpoint: "shop", Event: fmt.Sprint("evt_", n), Job: "job", Number: 1,
		Response: webhook.Response{Status: 200, Phase: webhook.PhaseAnswered, Duration: time.Millisecond},
	}
}

func kept(t *testing.T, store journal.Store) []journal.Attempt {
	t.Helper()
	list, _, err := store.Attempts(context.WithoutCancel(t.Context()), journal.AttemptFilter{}, "", 100_000)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRecorderWritesWhatWasObserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		r, stop := run(t, journal.RecorderConfig{Store: store})
		a := attempt(1)
		a.Excerpt, a.Err, a.RequestID, a.CutOff, a.Response.Resent = strings.Repeat("ä", 5000), "no", "req", true, true
		r.Observe(a)
		ended := time.Now()
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if r.Written() != 0 {
			t.Error("an attempt was written alone before its time")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		want := []journal.Attempt{{
			Tenant: "default", Endpoint: "shop", Event: "evt_1", Job: "job", Number: 1, At: ended.UTC(), Status: 200, Phase: "answered", Duration: time.Millisecond,
			Excerpt: strings.Repeat("ä", 512), Error: "no", RequestID: "req", CutOff: true, Resent: true,
		}}
		if diff := cmp.Diff(want, kept(t, store)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if r.Written() != 1 || r.Dropped() != 0 {
			t.Errorf("written %d, dropped %d", r.Written(), r.Dropped())
		}
		stop()
	})
}

// A full batch does not wait; deliveries never do, and what the buffer cannot hold is counted.
func TestRecorderNeverBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: openStore(t), gate: make(chan struct{})}
		var told atomic.Int64
		r, stop := run(t, journal.RecorderConfig{Store: store, Buffer: 100, Batch: 10, OnDrop: func(n int) { told.Add(int64(n)) }})
		start := time.Now()
		for n := range 10 {
			r.Observe(attempt(n))
		}
		synctest.Wait() // the writer hangs in the store with the first batch
		for n := range 150 {
			r.Observe(attempt(10 + n))
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("observing took %s", waited)
		}
		if r.Dropped() != 50 || told.Load() != 50 {
			t.Errorf("dropped %d, told %d, want 50", r.Dropped(), told.Load())
		}
		close(store.gate)
		synctest.Wait()
		if got := store.sizes(); len(got) != 11 || got[0] != 10 || got[10] != 10 {
			t.Errorf("batches of %v", got)
		}
		stop()
		if r.Written() != 110 || len(kept(t, store)) != 110 {
			t.Errorf("written %d, kept %d, want 110", r.Written(), len(kept(t, store)))
		}
	})
}

func TestRecorderOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: openStore(t)}
		r, stop := run(t, journal.RecorderConfig{Store: store, Buffer: 50, Batch: 10})
		store.strike(fmt.Errorf("%w: away", journal.ErrUnavailable))
		for n := range 50 {
			r.Observe(attempt(n))
		}
		time.Sleep(time.Minute)
		store.strike(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r.Written() != 50 || r.Dropped() != 0 {
			t.Errorf("written %d, dropped %d, want all 50 written", r.Written(), r.Dropped())
		}
		store.strike(errors.New("refused")) // for good: no batch keeps the next
		for n := range 10 {
			r.Observe(attempt(n))
		}
		synctest.Wait()
		store.strike(nil)
		r.Observe(attempt(1))
		stop()
		if r.Written() != 51 || r.Dropped() != 10 {
			t.Errorf("written %d, dropped %d, want 51 and 10", r.Written(), r.Dropped())
		}
	})
}

// A stop writes what waits, but not for longer than its bound.
func TestRecorderDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: openStore(t)}
		r, stop := run(t, journal.RecorderConfig{Store: store, Batch: 10})
		for n := range 95 {
			r.Observe(attempt(n))
		}
		stop()
		if r.Written() != 95 {
			t.Errorf("%d of 95 were written by the stop", r.Written())
		}

		r, stop = run(t, journal.RecorderConfig{Store: store, Batch: 10})
		store.strike(journal.ErrUnavailable)
		for n := range 95 {
			r.Observe(attempt(n))
		}
		synctest.Wait()
		start := time.Now()
		stop()
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("the stop took %s", took)
		}
		if r.Written() != 0 || r.Dropped() != 95 {
			t.Errorf("written %d, dropped %d, want all 95 dropped", r.Written(), r.Dropped())
		}

		r, stop = run(t, journal.RecorderConfig{Store: store, Batch: 10})
		store.strike(nil)
		store.gate = make(chan struct{}) // hangs
		for n := range 95 {
			r.Observe(attempt(n))
		}
		synctest.Wait()
		start = time.Now()
		stop()
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("the stop of a hanging store took %s", took)
		}
		if r.Written()+r.Dropped() != 95 {
			t.Errorf("written %d, dropped %d of 95", r.Written(), r.Dropped())
		}
	})
}

func (f *faulty) Expire(ctx context.Context, events, attempts time.Duration) error {
	f.mu.Lock()
	f.expired++
	f.mu.Unlock()
	return f.Store.Expire(ctx, events, attempts)
}

func TestRecorderExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Store: openStore(t)}
		e, err := webhook.Event{Type: "t"}.Checked()
		if err != nil {
			t.Fatal(err)
		}
		if err := store.PutEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		_, stop := run(t, journal.RecorderConfig{Store: store, Events: time.Hour, Attempts: 2 * time.Hour})
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if _, err := store.Event(t.Context(), e.Tenant, e.ID); err != nil {
			t.Errorf("too early: %v", err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if _, err := store.Event(t.Context(), e.Tenant, e.ID); !errors.Is(err, webhook.ErrNoEvent) {
			t.Errorf("too late: %v", err)
		}
		stop()
		if n := store.expired; n < 10 || n > 20 {
			t.Errorf("expired %d times in 69 min", n)
		}
	})
}

func TestRecorderRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		for _, c := range []struct {
			cfg  journal.RecorderConfig
			want string
		}{
			{journal.RecorderConfig{}, "store: required"},
			{journal.RecorderConfig{Store: store, Buffer: -1}, "buffer -1"},
			{journal.RecorderConfig{Store: store, Interval: -1}, "interval -1ns"},
			{journal.RecorderConfig{Store: store, Events: 2 * time.Hour, Attempts: time.Hour}, "attempts 1h0m0s: must be at least"},
		} {
			if _, err := journal.NewRecorder(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		}
	})
}
