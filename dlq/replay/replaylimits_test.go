package replay_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/queue"
)

func TestReplayKeepsItsRate(t *testing.T) {
	t.Parallel()
	for _, perSecond := range []float64{2, 50, 1000} {
		synctest.Test(t, func(t *testing.T) {
			const n = 200
			store, b := dlqtest.OpenMemory(t), &dlqtest.Broker{}
			putLetters(t, store, n)
			start := time.Now()
			if _, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, Rate: perSecond}); err != nil {
				t.Fatal(err)
			}
			chunk := max(1, min(100, int(perSecond/10)))
			for i, s := range b.Sent {
				// The first chunk is free; each job after it is due at the rate.
				if due := float64(i+1-chunk) / perSecond; s.At.Sub(start).Seconds() < due-1e-6 {
					t.Fatalf("at %v/s, job %d went out after %v", perSecond, i, s.At.Sub(start))
				}
			}
			if took, most := time.Since(start).Seconds(), (n+float64(chunk))/perSecond; took > most+1e-6 {
				t.Errorf("at %v/s, %d jobs took %.1f s, want at most %.1f", perSecond, n, took, most)
			}
		})
	}
}

func TestReplayCutsBatchesByBytes(t *testing.T) {
	t.Parallel()
	onStores(t, testReplayCutsBatchesByBytes)
}

func testReplayCutsBatchesByBytes(t *testing.T, open opener) {
	synctest.Test(t, func(t *testing.T) {
		store, b := open(t), &dlqtest.Broker{}
		for i := range 20 {
			e := dlqtest.Letter(t, i, nil)
			e.Message.Body = make([]byte, 100<<10)
			dlqtest.PutAll(t, store, e)
		}
		if _, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, ChunkBytes: 350 << 10}); err != nil {
			t.Fatal(err)
		}
		for i, size := range b.Sizes {
			if size > 350<<10 {
				t.Errorf("publish %d holds %d bytes", i, size)
			}
		}
		wantEachOnce(t, b, 20)
	})
}

func TestReplayAndDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, b := dlqtest.OpenMemory(t), &dlqtest.Broker{}
		past := func(e *queue.Envelope) { e.Deadline = time.Now().Add(-time.Second) }
		future := func(e *queue.Envelope) {
			e.Deadline, e.NotBefore = time.Now().Add(2*time.Hour), time.Now().Add(time.Hour)
		}
		dlqtest.PutAll(t, store, dlqtest.Letter(t, 0, past), dlqtest.Letter(t, 1, future))
		report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b})
		if err != nil || report.Refused != 1 || report.Replayed != 1 || !strings.Contains(report.Problems[0].Error, "deadline passed") {
			t.Fatalf("report %+v, %v", report, err)
		}
		if env, _ := b.Sent[0].Envelope(); env.ID != "job-1" || env.Deadline.IsZero() || !env.NotBefore.After(time.Now()) {
			t.Errorf("envelope %+v, want its deadline and due time kept", env)
		}
		report, err = runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, DropDeadline: true})
		if err != nil || report.Replayed != 1 {
			t.Fatalf("report %+v, %v", report, err)
		}
		if env, _ := b.Sent[1].Envelope(); env.ID != "job-0" || !env.Deadline.IsZero() {
			t.Errorf("envelope %+v, want no deadline", env)
		}
	})
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := dlqtest.OpenMemory(t)
		putLetters(t, store, 600)
		broken := dlqtest.Letter(t, 600, nil)
		broken.Message.Headers = map[string]string{queue.HeaderEnvelope: "{"}
		dlqtest.PutAll(t, store, broken)
		report, err := runReplay(t.Context(), t, replay.Config{Store: store, DryRun: true})
		if err != nil || !report.DryRun || report.Matched != 601 || report.Replayed != 600 || report.Refused != 1 {
			t.Errorf("report %+v, %v", report, err)
		}
		wantCounts(t, store, 601, 0)
		if got, err := store.Reserve(t.Context(), dlq.Filter{}, dlq.Reservation{Owner: "o", For: time.Second, Limit: 1000}); len(got) != 601 {
			t.Errorf("%d entries free after a dry run, %v", len(got), err)
		}
	})
}

// flaky is a store whose marks fail at first.
type flaky struct {
	*sqlite.Store
	failures int
}

func (f *flaky) Resolve(ctx context.Context, owner string, rs []dlq.Resolution) []error {
	if f.failures--; f.failures < 0 {
		return f.Store.Resolve(ctx, owner, rs)
	}
	errs := make([]error, len(rs))
	for i := range errs {
		errs[i] = dlq.ErrUnavailable
	}
	return errs
}

func TestReplayMarksThroughAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, b := &flaky{Store: dlqtest.OpenMemory(t), failures: 20}, &dlqtest.Broker{}
		putLetters(t, store, 150)
		if _, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b}); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, store, 0, 150)
		// An outage longer than the reservation is an error, and what was not marked is replayed again later.
		store.failures = 1 << 30
		dlqtest.PutAll(t, store, dlqtest.Letter(t, 1000, nil))
		if _, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b}); !errors.Is(err, dlq.ErrUnavailable) {
			t.Errorf("unmarked entries: %v", err)
		}
		wantCounts(t, store, 1, 150)
	})
}

func TestReplayConfigIsChecked(t *testing.T) {
	t.Parallel()
	store, b := dlqtest.OpenMemory(t), &dlqtest.Broker{}
	for name, cfg := range map[string]replay.Config{
		"no store":       {Broker: b},
		"no broker":      {Store: store},
		"held":           {Store: store, Broker: b, Filter: dlq.Filter{States: []dlq.State{dlq.StateDead, dlq.StateHeld}}},
		"rate":           {Store: store, Broker: b, Rate: -1},
		"chunk size":     {Store: store, Broker: b, ChunkSize: -1},
		"canary blind":   {Store: store, Broker: b, Canary: replay.Canary{Size: 1}},
		"canary percent": {Store: store, Broker: b, Canary: replay.Canary{MaxFail: 101}},
		"canary size":    {Store: store, Broker: b, Canary: replay.Canary{Size: -1}},
	} {
		if _, err := replay.New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
