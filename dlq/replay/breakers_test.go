package replay_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/queue"
)

// reports say which destinations are open.
type reports struct {
	mu   sync.Mutex
	open map[string]bool
	err  error
}

func (r *reports) Open(context.Context) (func(string) bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isOpen, r.err
}

func (r *reports) isOpen(destination string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[destination]
}

func (r *reports) set(destination string, open bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[destination], r.err = open, err
}

// putFor puts n dead letters, every second one for destination sick, the others for well.
func putFor(t *testing.T, store dlq.Store, n int) {
	t.Helper()
	entries := make([]dlq.Entry, n)
	for i := range entries {
		entries[i] = dlqtest.Letter(t, i, nil)
		entries[i].Destination = []string{"sick", "well"}[i%2]
	}
	dlqtest.PutAll(t, store, entries...)
}

// Jobs of an open destination are held while the others go, and follow when its breaker closes.
func TestReplayWaitsForBreakers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		store, b := dlqtest.OpenMemory(t), &dlqtest.Broker{}
		putFor(t, store, n)
		breakers := &reports{open: map[string]bool{"sick": true}}
		start := time.Now()
		cfg := replay.Config{Store: store, Broker: b, Breakers: replay.BreakerWait{Breakers: breakers}, Progress: func(r replay.Report) {
			// Longer than a reservation: what is held must not be published by mistake then.
			if time.Since(start) > 10*time.Minute {
				breakers.set("sick", false, nil)
				return
			}
			for _, s := range b.Sent {
				if s.Group == "sick" {
					t.Fatal("published while the breaker is open")
				}
			}
			if r.Held > 0 && (r.HeldFor["sick"] != r.Held || r.Held > n/2) {
				t.Errorf("report %+v", r)
			}
		}}
		report, err := runReplay(t.Context(), t, cfg)
		if err != nil || report.Replayed != n || report.Held != 0 || report.HeldFor != nil || report.Left != 0 {
			t.Errorf("report %+v, %v", report, err)
		}
		wantEachOnce(t, b, n)
	})
}

// The wait has an end: what is held then stays dead, and free for the next replay.
func TestReplayGivesUpOnBreakers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, b := dlqtest.OpenMemory(t), &dlqtest.Broker{}
		putFor(t, store, 10)
		breakers := &reports{open: map[string]bool{"sick": true}}
		cfg := replay.Config{Store: store, Broker: b, Breakers: replay.BreakerWait{Breakers: breakers, For: time.Minute}}
		start := time.Now()
		report, err := runReplay(t.Context(), t, cfg)
		if !errors.Is(err, replay.ErrBreakerOpen) || report.Replayed != 5 || report.Held != 5 || report.HeldFor["sick"] != 5 || report.Left != 0 {
			t.Errorf("report %+v, %v", report, err)
		}
		if took := time.Since(start); took < time.Minute || took > 61*time.Second {
			t.Errorf("waited %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if report, err = runReplay(ctx, t, cfg); !errors.Is(err, context.DeadlineExceeded) || report.Held != 5 {
			t.Errorf("cancelled: %+v, %v", report, err)
		}
		if report, err = runReplay(t.Context(), t, replay.Config{Store: store, Broker: b}); err != nil || report.Replayed != 5 {
			t.Errorf("afterwards: %+v, %v", report, err)
		}
		wantEachOnce(t, b, 10)
	})
}

// Where nobody tells, a replay does not begin; where nobody tells any more, it holds all that have a destination.
func TestReplayWithoutReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, b := dlqtest.OpenMemory(t), &dlqtest.Broker{}
		putFor(t, store, 400)
		nowhere := dlqtest.Letter(t, 400, nil)
		nowhere.Destination = ""
		dlqtest.PutAll(t, store, nowhere)
		silent := errors.New("no worker reports")
		breakers := &reports{open: map[string]bool{}, err: silent}
		cfg := replay.Config{Store: store, Broker: b, Rate: 100, Breakers: replay.BreakerWait{Breakers: breakers, For: time.Minute}}
		if report, err := runReplay(t.Context(), t, cfg); !errors.Is(err, silent) || report.Replayed != 0 || len(b.Sent) != 0 {
			t.Fatalf("begun: %+v, %v", report, err)
		}
		breakers.set("well", false, nil)
		cfg.Progress = func(r replay.Report) {
			if r.Replayed >= 200 {
				breakers.set("well", false, silent)
			}
		}
		report, err := runReplay(t.Context(), t, cfg)
		if !errors.Is(err, silent) || !errors.Is(err, replay.ErrBreakerOpen) || report.Held+report.Replayed != 401 || report.Replayed > 320 || report.Unreported == "" {
			t.Errorf("report %+v, %v", report, err)
		}
		if b.Jobs(t)["job-400.1"] != 1 {
			t.Error("a job without a destination was held")
		}
	})
}

// A rate counts what is published: looking at held jobs costs none of it.
func TestHeldJobsCostNoRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, b := dlqtest.OpenMemory(t), &dlqtest.Broker{}
		held := make([]dlq.Entry, 2000)
		for i := range held {
			held[i] = dlqtest.Letter(t, i, func(e *queue.Envelope) { e.ID = fmt.Sprintf("held-%d", i) })
			held[i].Destination = "sick"
		}
		dlqtest.PutAll(t, store, held...)
		putLetters(t, store, 10)
		start := time.Now()
		cfg := replay.Config{
			Store: store, Broker: b, Rate: 1,
			Breakers: replay.BreakerWait{Breakers: &reports{open: map[string]bool{"sick": true}}, For: time.Second},
		}
		report, err := runReplay(t.Context(), t, cfg)
		if !errors.Is(err, replay.ErrBreakerOpen) || report.Replayed != 10 || report.Held != 2000 {
			t.Errorf("report %+v, %v", report, err)
		}
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("took %v", took)
		}
		wantEachOnce(t, b, 10)
	})
}

func TestCanaryWaitsForBreakers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		letters, keys := dlqtest.OpenMemory(t), openClaims(t)
		putLetters(t, letters, 20)
		breakers := &reports{open: map[string]bool{"smtp": true}}
		b := &dlqtest.Broker{Then: func(s dlqtest.Sent) { work(t, keys, letters, s, false) }}
		cfg := replay.Config{
			Store: letters, Broker: b, Claims: keys, Breakers: replay.BreakerWait{Breakers: breakers},
			Canary:   replay.Canary{Size: 5, Outcomes: replay.StoreOutcomes{Claims: keys, Letters: letters}, Wait: time.Minute},
			Progress: func(r replay.Report) { breakers.set("smtp", r.Held < 20 && r.Canary.Size == 0, nil) },
		}
		report, err := runReplay(t.Context(), t, cfg)
		if err != nil || report.Canary.Completed != 5 || report.Replayed != 20 || report.Held != 0 {
			t.Errorf("report %+v, %v", report, err)
		}
	})
}
