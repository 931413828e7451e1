package brokerdlq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/internal/testkit/faultlab"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
)

const (
	killJobs  = 1000
	killChunk = 50
	killLease = 2 * time.Second
)

// killChildDir is the directory that the process is to replay in, if it is the child of TestKilledReplayLosesNothing.
func killChildDir() string { return os.Getenv("CAISSON_TEST_BROKERDLQ_CHILD") }

// inDir opens the queues in dir and passes them to do.
func inDir(ctx context.Context, dir string, do func(b queue.Broker, letters *brokerdlq.Queues) error) error {
	b, err := embedded.Open(ctx, embedded.Config{Path: filepath.Join(dir, "q.db")})
	if err != nil {
		return err
	}
	letters, err := brokerdlq.New(brokerdlq.Config{Broker: b, Lease: killLease, Idle: 500 * time.Millisecond})
	if err == nil {
		err = do(b, letters)
	}
	return errors.Join(err, b.Close())
}

func killChild(dir string) {
	err := inDir(context.Background(), dir, func(_ queue.Broker, letters *brokerdlq.Queues) error {
		_, _, err := letters.Replay(context.Background(), replay.Config{ChunkSize: killChunk, Progress: func(r replay.Report) { fmt.Println(r.Replayed) }})
		return err
	})
	fmt.Fprintln(os.Stderr, "child ended by itself:", err)
	os.Exit(3)
}

// Field case G4 (a): the replay is killed in the middle. No job is lost, and at most one chunk is published twice, with the same job ids and
// keys.
func TestKilledReplayLosesNothing(t *testing.T) {
	t.Parallel()
	dir, size := t.TempDir(), 100<<10
	if testing.Short() {
		size = 1 << 10
	}
	err := inDir(t.Context(), dir, func(b queue.Broker, letters *brokerdlq.Queues) error {
		for i := range killJobs {
			if err := errors.Join(letters.Put(t.Context(), []dlq.Entry{deadJob(t, fmt.Sprintf("job-%d", i), "mail", size)})...); err != nil {
				return err
			}
		}
		return b.CreateQueue(t.Context(), "mail")
	})
	if err != nil {
		t.Fatal(err)
	}
	faultlab.KillAt(t, killJobs/2, "CAISSON_TEST_BROKERDLQ_CHILD="+dir)
	again := 0
	err = inDir(t.Context(), dir, func(b queue.Broker, letters *brokerdlq.Queues) error {
		for end := time.Now().Add(time.Minute); ; {
			report, _, err := letters.Replay(t.Context(), replay.Config{})
			if err != nil {
				return err
			}
			again += report.Replayed
			// What the dead program had in hand comes back when its leases end.
			if d, err := b.Depth(t.Context(), queue.DLQ("mail")); err != nil || d.Ready.N+d.InFlight.N == 0 {
				return err
			}
			if time.Now().After(end) {
				return errors.New("a minute after the kill dead letters are still left")
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if again == 0 {
		t.Error("the child replayed everything: it was not killed in the middle")
	}
	wantEach(t, dir)
}

// wantEach fails unless the queue holds run 1 of each job, and at most one chunk of them twice.
func wantEach(t *testing.T, dir string) {
	t.Helper()
	seen := map[string]int{}
	err := inDir(t.Context(), dir, func(b queue.Broker, _ *brokerdlq.Queues) error {
		for _, m := range takeAll(t, b, "mail") {
			env, err := m.Envelope()
			if err != nil || env.Run != 1 || env.Key != "key of "+env.ID {
				return fmt.Errorf("message %+v: %w", env, err)
			}
			seen[env.ID]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	dlqtest.WantDoubled(t, seen, killJobs, killChunk)
}
