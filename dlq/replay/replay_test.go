package replay_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/queue"
)

func TestReplayPublishesTheNextRun(t *testing.T) {
	t.Parallel()
	onStores(t, testReplayPublishesTheNextRun)
}

func testReplayPublishesTheNextRun(t *testing.T, open opener) {
	synctest.Test(t, func(t *testing.T) {
		store, b := open(t), &dlqtest.Broker{}
		entry := dlqtest.Letter(t, 0, nil)
		dlqtest.PutAll(t, store, entry)
		report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b})
		if err != nil || report.Matched != 1 || report.Replayed != 1 || report.Left != 0 || report.ID == "" {
			t.Fatalf("report %+v, %v", report, err)
		}
		got := b.Sent[0]
		env, err := got.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		want, err := entry.Message.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		want.Run, want.AttemptBase, want.NotBefore = 1, 0, env.NotBefore
		if diff := cmp.Diff(want, env); diff != "" {
			t.Errorf("envelope (-want +got):\n%s", diff)
		}
		if !env.NotBefore.Equal(time.Now()) {
			t.Errorf("not before %v, want now, %v: the job's age counts from it", env.NotBefore, time.Now())
		}
		got.Headers = maps.Clone(got.Headers)
		delete(got.Headers, queue.HeaderEnvelope)
		if got.Queue != "mail" || string(got.Body) != string(entry.Message.Body) || len(got.Headers) != 1 || got.Headers["reply-to"] != "somewhere \xff" {
			t.Errorf("published to %s: %q with headers %q", got.Queue, got.Body, got.Headers)
		}
		if got.DedupID != "job-0.1" || got.Group != "smtp" || got.Delay != 0 {
			t.Errorf("dedup id %q, group %q, delay %v", got.DedupID, got.Group, got.Delay)
		}

		report, err = runReplay(t.Context(), t, replay.Config{Store: store, Broker: b})
		if err != nil || report.Matched != 0 || len(b.Sent) != 1 {
			t.Errorf("replayed again: %+v, %v", report, err)
		}
		// The run that died again is the next one to replay.
		dlqtest.PutAll(t, store, dlqtest.Letter(t, 0, func(e *queue.Envelope) { e.Run = 1 }))
		if _, err = runReplay(t.Context(), t, replay.Config{Store: store, Broker: b}); err != nil || b.Jobs(t)["job-0.2"] != 1 {
			t.Errorf("second life: %v, %v", b.Jobs(t), err)
		}
	})
}

// Field case G3.
func TestReplayGoesToEachEntrysOwnQueue(t *testing.T) {
	t.Parallel()
	onStores(t, testReplayGoesToEachEntrysOwnQueue)
}

func testReplayGoesToEachEntrysOwnQueue(t *testing.T, open opener) {
	synctest.Test(t, func(t *testing.T) {
		store, b := open(t), &dlqtest.Broker{}
		var entries []dlq.Entry
		for i := range 6 {
			e := dlqtest.Letter(t, i, nil)
			e.Queue = fmt.Sprintf("q%d", i%2)
			entries = append(entries, e)
		}
		foreign := dlq.Entry{
			Job: "q0:17", State: dlq.StateDead, Queue: "q0", Cause: dlq.CauseUndecodable, Error: "message has no envelope",
			Message: queue.Message{Body: []byte("hello"), Headers: map[string]string{"x": "y"}},
		}
		broken, lost, nowhere := dlqtest.Letter(t, 7, nil), dlqtest.Letter(t, 8, nil), foreign
		broken.Message.Headers[queue.HeaderEnvelope] = `{"v":1,`
		lost.Queue = ""
		nowhere.Job, nowhere.Queue, nowhere.Message.Body = "18", "", []byte("from nowhere")
		dlqtest.PutAll(t, store, append(entries, foreign, broken, lost, nowhere)...)

		report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b})
		if err != nil || report.Replayed != 7 || report.Refused != 3 || report.Failed != 0 || report.Left != 0 {
			t.Fatalf("report %+v, %v", report, err)
		}
		for _, s := range b.Sent {
			env, err := s.Envelope()
			if errors.Is(err, queue.ErrNoEnvelope) { // as it was received, in a life of its own
				if s.Queue != "q0" || string(s.Body) != "hello" || len(s.Headers) != 1 || s.Headers["x"] != "y" || s.DedupID != "q0:17.1" {
					t.Errorf("foreign message published to %s: %+v", s.Queue, s.Publication)
				}
				continue
			}
			if want := fmt.Sprintf("q%d", (env.ID[4]-'0')%2); s.Queue != want {
				t.Errorf("%s went to %s, want %s", env.ID, s.Queue, want)
			}
		}
		want := map[string]string{
			"job-7.0": "envelope cannot be read", "job-8.0": "queue that it came from is unknown", "18.0": "queue that it came from is unknown",
		}
		for _, p := range report.Problems {
			if text, ok := want[p.ID]; !ok || !p.Refused || !strings.Contains(p.Error, text) {
				t.Errorf("problem %+v, want %q", p, text)
			}
			delete(want, p.ID)
		}
		got, err := store.Get(t.Context(), "18.0")
		if err != nil || got.State != dlq.StateDead || got.Message.Headers["x"] != "y" {
			t.Errorf("foreign message: %+v, %v", got, err)
		}
		// With a queue named, all that can go goes there.
		report, err = runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, Queue: "q9"})
		if err != nil || report.Replayed != 2 || b.Sent[7].Queue != "q9" {
			t.Errorf("to another queue: %+v, %v", report, err)
		}
	})
}

// Field case G4 (d).
func TestReplayLosesNothingWhenPublishesFail(t *testing.T) {
	t.Parallel()
	onStores(t, testReplayLosesNothingWhenPublishesFail)
}

func testReplayLosesNothingWhenPublishesFail(t *testing.T, open opener) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		store := open(t)
		putLetters(t, store, n)
		b := &dlqtest.Broker{Fail: func(_ string, n int) error {
			if n%7 == 0 {
				return fmt.Errorf("throttled: %w", queue.ErrUnavailable)
			}
			return nil
		}}
		report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, ChunkSize: 30})
		failed := n / 7
		if !errors.Is(err, queue.ErrUnavailable) || report.Failed != failed || report.Replayed != n-failed || report.Left != 0 {
			t.Fatalf("report %+v, %v", report, err)
		}
		wantCounts(t, store, failed, n-failed)
		// What failed was given back: no need to wait for the reservation.
		b.Fail = nil
		if report, err = runReplay(t.Context(), t, replay.Config{Store: store, Broker: b}); err != nil || report.Replayed != failed {
			t.Fatalf("second report %+v, %v", report, err)
		}
		wantCounts(t, store, 0, n)
		wantEachOnce(t, b, n)
	})
}

// Field case G4 (c).
func TestReplayToMissingQueueRemovesNothing(t *testing.T) {
	t.Parallel()
	onStores(t, testReplayToMissingQueueRemovesNothing)
}

func testReplayToMissingQueueRemovesNothing(t *testing.T, open opener) {
	synctest.Test(t, func(t *testing.T) {
		store := open(t)
		putLetters(t, store, 250)
		other := dlqtest.Letter(t, 1000, nil)
		other.Queue = "there"
		dlqtest.PutAll(t, store, other)
		b := &dlqtest.Broker{Fail: func(name string, _ int) error {
			if name != "there" {
				return fmt.Errorf("%s: %w", name, queue.ErrQueueNotFound)
			}
			return nil
		}}
		report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b})
		if !errors.Is(err, queue.ErrQueueNotFound) || !strings.Contains(err.Error(), "mail") || report.Failed != 250 || report.Replayed != 1 {
			t.Errorf("report %+v, %v", report, err)
		}
		if len(report.Problems) != 100 {
			t.Errorf("%d problems listed, want the first 100", len(report.Problems))
		}
		wantCounts(t, store, 250, 1)
		if b.Calls != 2 {
			t.Errorf("%d publishes, want one to each queue: a missing queue is asked once", b.Calls)
		}
	})
}

func TestReplayStopsWhenTheBrokerIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := dlqtest.OpenMemory(t)
		putLetters(t, store, 300)
		b := &dlqtest.Broker{Fail: func(string, int) error { return queue.ErrUnavailable }}
		report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, ChunkSize: 100})
		if !errors.Is(err, queue.ErrUnavailable) || b.Calls != 1 || report.Failed != 100 || report.Left != 200 {
			t.Errorf("%d publishes, report %+v, %v", b.Calls, report, err)
		}
		wantCounts(t, store, 300, 0)
	})
}

// Field case G4 (b).
func TestCancelledReplayEndsBetweenBatches(t *testing.T) {
	t.Parallel()
	onStores(t, testCancelledReplayEndsBetweenBatches)
}

func testCancelledReplayEndsBetweenBatches(t *testing.T, open opener) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		store, b := open(t), &dlqtest.Broker{}
		putLetters(t, store, n)
		ctx, cancel := context.WithCancel(t.Context())
		report, err := runReplay(ctx, t, replay.Config{Store: store, Broker: b, ChunkSize: 100, Progress: func(r replay.Report) {
			if r.Replayed >= 250 {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || report.Replayed != 300 || report.Left != 200 {
			t.Errorf("report %+v, %v", report, err)
		}
		wantCounts(t, store, 200, 300)
		if _, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b}); err != nil {
			t.Error(err)
		}
		wantEachOnce(t, b, n)
	})
}

func TestReplaysAtOnceShareTheWork(t *testing.T) {
	t.Parallel()
	onStores(t, testReplaysAtOnceShareTheWork)
}

func testReplaysAtOnceShareTheWork(t *testing.T, open opener) {
	synctest.Test(t, func(t *testing.T) {
		const n = 600
		store, b := open(t), &dlqtest.Broker{}
		putLetters(t, store, n)
		var wg sync.WaitGroup
		var replayed [3]int
		for i := range replayed {
			wg.Go(func() {
				report, err := runReplay(t.Context(), t, replay.Config{Store: store, Broker: b, ChunkSize: 20})
				if err != nil {
					t.Error(err)
				}
				replayed[i] = report.Replayed
			})
		}
		wg.Wait()
		wantEachOnce(t, b, n)
		wantCounts(t, store, 0, n)
		if sum := replayed[0] + replayed[1] + replayed[2]; sum != n {
			t.Errorf("%v replayed, want %d in all", replayed, n)
		}
	})
}

func TestReplayLeavesWhatDiesAgain(t *testing.T) {
	t.Parallel()
	onStores(t, testReplayLeavesWhatDiesAgain)
}

func testReplayLeavesWhatDiesAgain(t *testing.T, open opener) {
	synctest.Test(t, func(t *testing.T) {
		store := open(t)
		putLetters(t, store, 50)
		var died []dlq.Entry
		b := &dlqtest.Broker{Then: func(s dlqtest.Sent) {
			env, _ := s.Envelope()
			died = append(died, dlq.Entry{Job: env.ID, Run: env.Run, State: dlq.StateDead, Queue: s.Queue, Message: s.Message})
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		report, err := runReplay(ctx, t, replay.Config{Store: store, Broker: b, ChunkSize: 10, Progress: func(r replay.Report) {
			dlqtest.PutAll(t, store, died...)
			if r.Replayed > 50 {
				cancel()
			}
		}})
		if err != nil || report.Replayed != 50 || report.Left != 0 {
			t.Errorf("report %+v, %v", report, err)
		}
		wantCounts(t, store, 50, 50)
	})
}
