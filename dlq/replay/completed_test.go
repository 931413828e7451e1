package replay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/queue"
)

// completeKey completes the key of job n on behalf of another job.
func completeKey(t *testing.T, claims idempotency.Store, key string) {
	t.Helper()
	m, err := queue.NewMessage(queue.Envelope{ID: fmt.Sprintf("other-%x", idempotency.FingerprintOf([]byte(key))), Kind: "email.send", Key: key, EnqueuedAt: time.Now()}, []byte("p"))
	if err != nil {
		t.Fatal(err)
	}
	work(t, claims, nil, dlqtest.Sent{Publication: queue.Publication{Message: m}, Queue: "mail", At: time.Now()}, false)
}

// What has completed meanwhile is left out, says so, and stays dead; the others go.
func TestReplayLeavesOutWhatHasCompleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, keys, b := dlqtest.OpenMemory(t), openClaims(t), &dlqtest.Broker{}
		const n = 250
		putLetters(t, store, n)
		foreign := dlqtest.Letter(t, n, nil)
		foreign.Cause = dlq.CauseMismatch
		dlqtest.PutAll(t, store, foreign)
		for i := 0; i <= n; i += 5 {
			completeKey(t, keys, fmt.Sprintf("order-%d", i))
		}
		cfg := replay.Config{Store: store, Broker: b, Claims: keys}
		cfg.DryRun = true
		for _, dry := range []bool{true, false} {
			cfg.DryRun = dry
			report, err := runReplay(t.Context(), t, cfg)
			if err != nil || report.Replayed != 200 || report.Completed != 50 || report.Refused != 1 || report.Left != 0 || report.Forgotten != 0 {
				t.Fatalf("dry run %t: %+v, %v", dry, report, err)
			}
			if dry && (len(b.Sent) > 0 || report.Queues["mail"] != 200 || report.Destinations["smtp"] != 200) {
				t.Errorf("dry run: %d sent, report %+v", len(b.Sent), report)
			}
			for _, p := range report.Problems {
				if want := map[bool]string{true: "its work is done", false: "with another payload"}[p.Completed]; !strings.Contains(p.Error, want) || p.Refused == p.Completed {
					t.Errorf("problem %+v", p)
				}
			}
		}
		wantCounts(t, store, 51, 200)
		for id := range b.Jobs(t) {
			var i int
			if _, err := fmt.Sscanf(id, "job-%d.1", &i); err != nil || i%5 == 0 {
				t.Errorf("%s was published", id)
			}
		}
		// They were given back: what is forced can have them at once.
		report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, Claims: keys, Force: true})
		if err != nil || report.Replayed != 51 || report.Forced != 51 {
			t.Errorf("forced: %+v, %v", report, err)
		}
	})
}

// A forced run has a key of its own, so that a worker really runs it; a job whose key is not completed keeps its key.
func TestForcedRunsHaveTheirOwnKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, keys, b := dlqtest.OpenMemory(t), openClaims(t), &dlqtest.Broker{}
		long := strings.Repeat("ü", 500)
		dlqtest.PutAll(t, store, dlqtest.Letter(t, 0, nil), dlqtest.Letter(t, 1, nil), dlqtest.Letter(t, 2, func(e *queue.Envelope) { e.Key = long }))
		completeKey(t, keys, "order-0")
		completeKey(t, keys, long)
		if _, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, Claims: keys, Force: true}); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, s := range b.Sent {
			env, err := s.Envelope()
			if err != nil {
				t.Fatal(err)
			}
			got[env.ID] = env.Key
			key := idempotency.Key{Scope: env.Kind, Value: env.Key}
			c := keys.Claim(t.Context(), []idempotency.Request{{Key: key, Job: env.ID, Run: env.Run, Fingerprint: idempotency.FingerprintOf(s.Body), Lease: time.Minute}})[0]
			if c.Status != idempotency.StatusAcquired {
				t.Errorf("%s: claim is %s", env.ID, c.Status)
			}
		}
		if got["job-0"] != "order-0#replay-1" || got["job-1"] != "order-1" {
			t.Errorf("keys %v", got)
		}
		if k := got["job-2"]; len(k) > 1000 || !utf8.ValidString(k) || !strings.HasPrefix(k, "üü") || !strings.HasSuffix(k, "#replay-1") {
			t.Errorf("long key became %q", k)
		}
	})
}

// many answers for all keys at once.
type many struct {
	idempotency.Store
	calls int
}

func (m *many) Get(context.Context, idempotency.Key) (idempotency.Record, error) {
	panic("one by one")
}

func (m *many) Completed(ctx context.Context, keys []idempotency.Key) ([]bool, error) {
	m.calls++
	if m.calls == 1 {
		return nil, fmt.Errorf("away: %w", idempotency.ErrUnavailable)
	}
	bulk, ok := m.Store.(replay.BulkKeyReader)
	if !ok {
		panic("the store looks keys up one by one")
	}
	return bulk.Completed(ctx, keys)
}

// Keys are looked up a chunk at a time where the store can, and a store that is away for a moment is waited for.
func TestReplayLooksUpKeysInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, keys, b := dlqtest.OpenMemory(t), &many{Store: openClaims(t)}, &dlqtest.Broker{}
		putLetters(t, store, 300)
		completeKey(t, keys.Store, "order-7")
		report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, Claims: keys})
		if err != nil || report.Replayed != 299 || report.Completed != 1 || keys.calls > 5 {
			t.Errorf("%d look-ups, report %+v, %v", keys.calls, report, err)
		}
	})
}

// Beyond the keys' retention nobody can tell, and the report says so; the jobs go all the same.
func TestReplayCannotTellBeyondKeyRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, keys, b := dlqtest.OpenMemory(t), openClaims(t), &dlqtest.Broker{}
		putLetters(t, store, 3)
		imported := dlqtest.Letter(t, 3, nil)
		imported.LastFailedAt = time.Now().Add(-50 * time.Hour)
		dlqtest.PutAll(t, store, imported)
		cfg := replay.Config{Store: store, Broker: b, Claims: keys, DryRun: true}
		check := func(want int) {
			t.Helper()
			report, err := runReplay(t.Context(), t, cfg)
			if err != nil || report.Replayed != 4 || report.Forgotten != want {
				t.Errorf("report %+v, %v; want %d forgotten", report, err, want)
			}
		}
		check(1)
		time.Sleep(47 * time.Hour)
		check(1)
		time.Sleep(2 * time.Hour)
		check(4)
		cfg.KeyRetention = 7 * 24 * time.Hour
		check(0)
		cfg.Claims = nil
		check(4)
		cfg.DryRun = false
		check(4)
	})
}

func TestForceNeedsClaims(t *testing.T) {
	t.Parallel()
	if _, err := replay.New(replay.Config{Store: dlqtest.OpenMemory(t), Broker: &dlqtest.Broker{}, Force: true}); err == nil || !strings.Contains(err.Error(), "force needs claims") {
		t.Errorf("%v", err)
	}
}
