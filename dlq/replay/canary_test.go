package replay_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/idempotency"
	claims "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/queue"
)

func openClaims(t *testing.T) idempotency.Store {
	t.Helper()
	store, err := claims.Open(t.Context(), claims.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// work runs a replayed job as a worker would: it completes its key, or puts it into the dead letters again.
func work(t *testing.T, claims idempotency.Store, letters dlq.Store, s dlqtest.Sent, dies bool) {
	env, err := s.Envelope()
	if err != nil {
		t.Error(err)
		return
	}
	if dies {
		entry := dlq.Entry{Job: env.ID, Run: env.Run, State: dlq.StateDead, Queue: s.Queue, Message: s.Message}
		if err := letters.Put(t.Context(), []dlq.Entry{entry})[0]; err != nil {
			t.Error(err)
		}
		return
	}
	key := idempotency.Key{Scope: env.Kind, Value: env.Key}
	c := claims.Claim(t.Context(), []idempotency.Request{{
		Key: key, Job: env.ID, Run: env.Run, Fingerprint: idempotency.FingerprintOf(s.Body), Lease: time.Minute,
	}})[0]
	held := idempotency.Handle{Key: key, Job: env.ID, Run: env.Run, Token: c.Token}
	if err := claims.Complete(t.Context(), []idempotency.Completion{{Handle: held}})[0]; err != nil {
		t.Error(err)
	}
}

func TestCanary(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		maxFail float64
		deaths  int // of the first 10
		hangs   int // of the first 10
		want    error
		goesOn  bool
	}{
		"all complete":          {0, 0, 0, nil, true},
		"as many as allowed":    {20, 2, 0, nil, true},
		"one too many":          {20, 3, 0, replay.ErrCanaryFailed, false},
		"none allowed":          {0, 1, 0, replay.ErrCanaryFailed, false},
		"failed before the end": {20, 3, 5, replay.ErrCanaryFailed, false},
		"never ends":            {20, 0, 1, replay.ErrCanaryUndecided, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 100
				letters, keys := dlqtest.OpenMemory(t), openClaims(t)
				putLetters(t, letters, n)
				var queued []dlqtest.Sent
				b := &dlqtest.Broker{}
				b.Then = func(s dlqtest.Sent) { queued = append(queued, s) }
				cfg := replay.Config{
					Store: letters, Broker: b, ChunkSize: 7,
					Canary: replay.Canary{Size: 10, MaxFail: tc.maxFail, Outcomes: replay.StoreOutcomes{Claims: keys, Letters: letters}, Wait: time.Minute},
				}
				// The worker takes what the canary sent once it is complete.
				worked := false
				cfg.Progress = func(r replay.Report) {
					if r.Canary.Size < 10 || worked {
						return
					}
					worked = true
					for i, s := range queued[:10-tc.hangs] {
						work(t, keys, letters, s, i < tc.deaths)
					}
				}
				report, err := runReplay(t.Context(), t, cfg)
				if !errors.Is(err, tc.want) {
					t.Fatalf("report %+v, %v, want %v", report, err, tc.want)
				}
				c := report.Canary
				if c.Size != 10 || c.Died != tc.deaths || c.Pending != tc.hangs || c.Completed != 10-tc.deaths-tc.hangs {
					t.Errorf("canary %+v", c)
				}
				if want := map[bool]int{true: n, false: 10}[tc.goesOn]; report.Replayed != want || report.Left != n-want {
					t.Errorf("report %+v, want %d replayed", report, want)
				}
			})
		})
	}
}

func TestStoreOutcomes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		letters, keys := dlqtest.OpenMemory(t), openClaims(t)
		o := replay.StoreOutcomes{Claims: keys, Letters: letters}
		status := func(n int) replay.Status {
			entry := dlqtest.Letter(t, n, nil)
			f, err := o.Status(t.Context(), replay.Republished{Job: entry.Job, Run: 1, Key: idempotency.Key{Scope: entry.Kind, Value: entry.Key}})
			if err != nil {
				t.Error(err)
			}
			return f
		}
		if s := status(0); s != replay.StatusPending {
			t.Errorf("unknown run: %v", s)
		}
		dlqtest.PutAll(t, letters, dlqtest.Letter(t, 0, nil))
		if s := status(0); s != replay.StatusPending {
			t.Errorf("dead letter of the run before: %v", s)
		}
		run1 := dlqtest.Letter(t, 0, func(e *queue.Envelope) { e.Run = 1 })
		run1.State = dlq.StateHeld
		dlqtest.PutAll(t, letters, run1)
		if s := status(0); s != replay.StatusPending {
			t.Errorf("held: %v", s)
		}
		run1.State = dlq.StateDead
		dlqtest.PutAll(t, letters, run1)
		if s := status(0); s != replay.StatusDied {
			t.Errorf("dead: %v", s)
		}
	})
}
