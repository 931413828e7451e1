package dlq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
)

const killBatch = 50

// replayChildPath is the directory that the process is to replay in, if it is the child of TestKilledReplayLosesNothing.
func replayChildPath() string { return os.Getenv("CAISSON_TEST_REPLAY_CHILD") }

// inFile opens dead letters and queue in the file in dir, as a worker has them, and passes them to do.
func inFile(ctx context.Context, dir string, do func(store dlq.Store, broker queue.Broker) error) error {
	broker, err := embedded.Open(ctx, embedded.Config{Path: filepath.Join(dir, "caisson.db")})
	if err != nil {
		return err
	}
	store, err := sqlite.New(ctx, broker.File())
	if err == nil {
		err = do(store, broker)
	}
	return errors.Join(err, broker.Close())
}

// replayIn replays what is in the file in dir.
func replayIn(ctx context.Context, dir string, progress func(dlq.Report)) (report dlq.Report, err error) {
	err = inFile(ctx, dir, func(store dlq.Store, broker queue.Broker) error {
		r, err := dlq.NewReplay(dlq.ReplayConfig{
			Store: store, Broker: broker, BatchSize: killBatch, Reservation: 500 * time.Millisecond, Progress: progress,
		})
		if err != nil {
			return err
		}
		report, err = r.Run(ctx)
		return err
	})
	return report, err
}

func replayChild(dir string) {
	report, err := replayIn(context.Background(), dir, func(r dlq.Report) { fmt.Println(r.Replayed) })
	fmt.Fprintln(os.Stderr, "child ended by itself:", report, err)
	os.Exit(3)
}

// Field case G4 (a): the replay is killed in the middle. No job is lost, and at most one batch is published twice, with the same
// job ids and keys.
func TestKilledReplayLosesNothing(t *testing.T) {
	const n = 1000
	dir := t.TempDir()
	err := inFile(t.Context(), dir, func(store dlq.Store, broker queue.Broker) error {
		putLetters(t, store, n)
		return broker.CreateQueue(t.Context(), "mail")
	})
	if err != nil {
		t.Fatal(err)
	}
	killChildAt(t, dir, n/2)

	// The killed replay's batch is free once its reservation is over.
	total := 0
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		report, err := replayIn(t.Context(), dir, nil)
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
	wantQueue(t, dir, n)
}

// killChildAt starts a replay in a process of its own and kills it once it reported n jobs.
func killChildAt(t *testing.T, dir string, n int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CAISSON_TEST_REPLAY_CHILD="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if done, err := strconv.Atoi(lines.Text()); err == nil && done >= n {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the child was not killed: %v", err)
	}
}

// wantQueue fails unless the queue holds run 1 of jobs 0 to n-1, and at most one batch of them twice.
func wantQueue(t *testing.T, dir string, n int) {
	t.Helper()
	seen := map[string]int{}
	err := inFile(t.Context(), dir, func(_ dlq.Store, broker queue.Broker) error {
		sub, err := broker.Subscribe(t.Context(), "mail", queue.SubscribeConfig{Slots: 2 * n})
		if err != nil {
			return err
		}
		depth, err := broker.Depth(t.Context(), "mail")
		if err != nil {
			return err
		}
		for left := int(depth.Ready.N); left > 0; {
			leases, err := sub.Receive(t.Context(), left)
			if err != nil {
				return err
			}
			left -= len(leases)
			for _, l := range leases {
				seen[wantRun1(t, l.Message)]++
			}
		}
		return sub.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	doubled := 0
	for i := range n {
		switch id := fmt.Sprintf("job-%d", i); seen[id] {
		case 1:
		case 2:
			doubled++
		default:
			t.Errorf("%s was published %d times", id, seen[id])
		}
	}
	if doubled > killBatch {
		t.Errorf("%d jobs were doubled, more than one batch of %d", doubled, killBatch)
	}
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
