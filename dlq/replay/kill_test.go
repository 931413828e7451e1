package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/queue"
)

const (
	killChunk      = 50
	replayChildEnv = "CAISSON_TEST_REPLAY_CHILD"
)

// replay replays what is there.
func (w world) replay(ctx context.Context, progress func(replay.Report)) (report replay.Report, err error) {
	err = w.open(ctx, func(store dlq.Store, b queue.Broker) error {
		r, err := replay.New(replay.Config{
			Store: store, Broker: b, ChunkSize: killChunk, Reservation: 3 * time.Second, Progress: progress,
		})
		if err != nil {
			return err
		}
		report, err = r.Run(ctx)
		return err
	})
	return report, err
}

// replayChild is what the child of TestKilledReplayLosesNothing does in the world that it is told.
func replayChild(told string) {
	var w world
	err := json.Unmarshal([]byte(told), &w)
	if err == nil {
		_, err = w.replay(context.Background(), func(r replay.Report) { fmt.Println(r.Replayed) })
	}
	fmt.Fprintln(os.Stderr, "child ended by itself:", err)
	os.Exit(3)
}

// Field case G4 (a): the replay is killed in the middle. No job is lost, and at most one chunk is published twice, with the same
// job ids and keys.
func TestKilledReplayLosesNothing(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w world) {
		n := 1000
		if w.Broker != "embedded" {
			n = 300
		}
		var names []string
		err := w.open(t.Context(), func(store dlq.Store, b queue.Broker) error {
			names = w.queues(t, b, "mail")
			entries := make([]dlq.Entry, n)
			for i := range entries {
				entries[i] = w.letter(t, i, names[0])
			}
			dlqtest.PutAll(t, store, entries...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		faultlab.KillAt(t, n/2, w.environment()...)

		// The killed replay's batch is free once its reservation is over.
		total := 0
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			report, err := w.replay(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			total += report.Replayed
			if report.Left == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("a minute after the kill %d entries are still reserved", report.Left)
			}
		}
		if total == 0 {
			t.Error("the child replayed everything: it was not killed in the middle")
		}
		err = w.open(t.Context(), func(_ dlq.Store, b queue.Broker) error {
			wantMessages(t, take(t, b, names[0], n), n)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// wantMessages fails unless the messages are run 1 of jobs 0 to n-1, and at most one chunk of them twice.
func wantMessages(t *testing.T, messages []queue.Message, n int) {
	t.Helper()
	seen := map[string]int{}
	for _, m := range messages {
		seen[wantRun1(t, m)]++
	}
	dlqtest.WantDoubled(t, seen, n, killChunk)
}

// wantRun1 fails unless m is run 1 of a job, unchanged. It returns the job's id.
func wantRun1(t *testing.T, m queue.Message) string {
	t.Helper()
	env, err := m.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	if env.Run != 1 || env.Key != "order-"+env.ID[len("job-"):] || string(m.Body) != "payload of "+env.ID+" \x00\xff" {
		t.Fatalf("%s came as run %d with key %q and body %q", env.ID, env.Run, env.Key, m.Body)
	}
	return env.ID
}
