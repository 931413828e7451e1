package dlq_test

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/queue"
)

// putHeld holds jobs 0 to n-1 for smtp.
func putHeld(t *testing.T, store dlq.Store, n int) []dlq.Entry {
	t.Helper()
	entries := make([]dlq.Entry, n)
	for i := range entries {
		entries[i] = dlqtest.Letter(t, i, nil)
		entries[i].State, entries[i].Cause = dlq.StateHeld, dlq.CauseDestinationOpen
		dlqtest.PutAll(t, store, entries[i])
	}
	return entries
}

func heldCount(t *testing.T, store dlq.Store) int {
	t.Helper()
	n, err := store.Count(t.Context(), dlq.Filter{States: []dlq.State{dlq.StateHeld}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func release(t *testing.T, store dlq.Store, b *dlqtest.Broker, n, want int) {
	t.Helper()
	got, err := dlq.ReleaseHeld(t.Context(), store, b, "smtp", n, "worker-1")
	if err != nil || got != want {
		t.Fatalf("released %d, %v, want %d", got, err, want)
	}
}

func TestReleaseHeldChangesTheDueTimeOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, b := dlqtest.OpenMemory(t), &dlqtest.Broker{}
		entries := putHeld(t, store, 5)
		other := dlqtest.Letter(t, 9, nil)
		other.State, other.Destination = dlq.StateHeld, "elsewhere"
		dlqtest.PutAll(t, store, other, dlqtest.Letter(t, 10, nil))

		release(t, store, b, 2, 2)
		release(t, store, b, 10, 3)
		release(t, store, b, 10, 0)
		for i, s := range b.Sent {
			want := entries[i].Message
			env, err := want.Envelope()
			if err != nil {
				t.Fatal(err)
			}
			env.NotBefore = time.Now()
			want.Headers = maps.Clone(want.Headers)
			if want.Headers[queue.HeaderEnvelope], err = env.Encode(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, s.Message); diff != "" || s.Queue != "mail" {
				t.Errorf("job %d went to %s changed:\n%s", i, s.Queue, diff)
			}
		}
		if n := heldCount(t, store); n != 1 {
			t.Errorf("%d entries held, want the other destination's", n)
		}
		if n, err := store.Count(t.Context(), dlq.Filter{States: []dlq.State{dlq.StateDead, dlq.StateReplayed}}); err != nil || n != 1 {
			t.Errorf("%d entries are dead or replayed, %v, want the dead one", n, err)
		}
	})
}

func TestReleaseHeldKeepsWhatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := dlqtest.OpenMemory(t)
		putHeld(t, store, 20)
		b := &dlqtest.Broker{Fail: func(_ string, n int) error {
			if n%7 == 0 {
				return queue.ErrUnavailable
			}
			return nil
		}}
		n, err := dlq.ReleaseHeld(t.Context(), store, b, "smtp", 20, "worker-1")
		if n != 18 || !errors.Is(err, queue.ErrUnavailable) || heldCount(t, store) != 2 {
			t.Fatalf("released %d, %v, %d held", n, err, heldCount(t, store))
		}
		b.Fail = nil
		release(t, store, b, 20, 2)
		if jobs := b.Jobs(t); len(jobs) != 20 {
			t.Errorf("%d jobs were published", len(jobs))
		}
	})
}

// A fast worker receives the released job, finds the destination still sick and holds the job again, all before the release is
// marked. Its message is acked, so that the entry must stay.
func TestReleasedJobThatComesBackIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := dlqtest.OpenMemory(t)
		entries := putHeld(t, store, 3)
		b := &dlqtest.Broker{Then: func(s dlqtest.Sent) {
			if env, _ := s.Envelope(); env.ID == "job-1" {
				for _, err := range store.Put(t.Context(), entries[1:2]) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		}}
		release(t, store, b, 3, 3)
		if n := heldCount(t, store); n != 1 {
			t.Fatalf("%d entries held, want the one that came back", n)
		}
		b.Then = nil
		release(t, store, b, 3, 1)
		if ids := map[string]bool{b.Sent[1].DedupID: true, b.Sent[3].DedupID: true}; len(ids) != 2 {
			t.Errorf("two releases of a job share the dedup id %q", b.Sent[1].DedupID)
		}
	})
}

func TestReleasesAtOnceNeverShareAJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, b := dlqtest.OpenMemory(t), &dlqtest.Broker{}
		putHeld(t, store, 100)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for {
					n, err := dlq.ReleaseHeld(t.Context(), store, b, "smtp", 7, fmt.Sprint("worker-", i))
					if err != nil {
						t.Error(err)
					}
					if n == 0 || err != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		if len(b.Sent) != 100 || len(b.Jobs(t)) != 100 {
			t.Errorf("%d publishes of %d jobs, want 100 of each", len(b.Sent), len(b.Jobs(t)))
		}
	})
}

func TestReleaseHeldRefusesBadArguments(t *testing.T) {
	t.Parallel()
	store := dlqtest.OpenMemory(t)
	if _, err := dlq.ReleaseHeld(t.Context(), store, &dlqtest.Broker{}, "", 1, "o"); err == nil {
		t.Error("no destination is taken")
	}
	if _, err := dlq.ReleaseHeld(t.Context(), store, &dlqtest.Broker{}, "smtp", 0, "o"); err == nil {
		t.Error("n of 0 is taken")
	}
}
