package worker_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// The crash test: real worker processes, killed with SIGKILL once a second, and a ledger written by the handlers themselves. The rules that
// the ledger must keep are in [ledger.check].

const (
	killKind     = "kill.job"
	killAttempts = 25 // far more than the kills that can hit one job
	killLease    = 2 * time.Second
)

type killJob struct {
	N     int `json:"n"`
	Fails int `json:"fails"`
}

// run is one run of a handler as the ledger saw it. End is zero if it was cut.
type run struct {
	Key     string    `json:"key"`
	Run     int       `json:"run"`
	Attempt int       `json:"attempt"`
	Token   int64     `json:"token"`
	PID     int       `json:"pid"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end,omitzero"`
	OK      bool      `json:"ok,omitzero"`
}

func TestKillLedger(t *testing.T) {
	jobs, length := 5000, 20*time.Second
	if os.Getenv("SOAK") != "" {
		jobs, length = 20000, time.Minute
	} else if testing.Short() {
		jobs, length = 1000, 5*time.Second
	}
	t.Run("claim and lease ended together", func(t *testing.T) { checkKills(t, jobs, length, "") })
	// Where claims and queue share no database, there are two commits for a kill to come between.
	t.Run("one after the other", func(t *testing.T) { checkKills(t, max(jobs/4, 1000), max(length/4, 4*time.Second), "apart") })
}

func checkKills(t *testing.T, jobs int, length time.Duration, mutation string) {
	l := killRound(t, jobs, length, mutation)
	for _, fault := range l.check() {
		t.Error(fault)
	}
	t.Logf("%d jobs, %d runs, %d of them cut, %d kills", jobs, len(l.runs), l.cut(), len(l.kills))
	if len(l.kills) == 0 || l.cut() == 0 {
		t.Errorf("the test did not bite: %d kills cut %d runs", len(l.kills), l.cut())
	}
}

// A worker that acks before the completion is stored must be found out by the same check.
func TestKillLedgerFindsABrokenSettleOrder(t *testing.T) {
	l := killRound(t, 1500, 6*time.Second, "ack-first")
	if faults := l.check(); len(faults) == 0 {
		t.Error("acking before completing went unnoticed")
	} else {
		t.Logf("found as it must be: %d faults, the first: %s", len(faults), faults[0])
	}
}

// killRound enqueues jobs, works them with processes that are killed for length, then lets them finish, and returns the ledger.
func killRound(t *testing.T, jobs int, length time.Duration, mutation string) *ledger {
	t.Helper()
	dir := t.TempDir()
	rig := openRig(t, filepath.Join(dir, "caisson.db"))
	client := rig.client(t)
	batch := make([]worker.NewJob, jobs)
	for i := range batch {
		job := killJob{N: i}
		if i%3 == 0 {
			job.Fails = 1 + i%2
		}
		batch[i] = worker.NewJob{Kind: killKind, ID: fmt.Sprintf("job-%05d", i), Payload: job}
	}
	for _, r := range client.EnqueueBatch(t.Context(), batch) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}

	l := &ledger{jobs: jobs, rig: rig}
	crew := []*child{startChild(t, dir, mutation), startChild(t, dir, mutation)}
	until := time.Now().Add(length)
	for tick := time.NewTicker(time.Second); time.Now().Before(until); {
		<-tick.C
		victim := rand.IntN(len(crew))
		l.kills = append(l.kills, crew[victim].kill(t))
		crew[victim] = startChild(t, dir, mutation)
	}
	rig.waitEmpty(t, worker.DefaultQueue, 2*time.Minute)
	for _, c := range crew {
		c.stop(t)
	}
	l.read(t, dir)
	return l
}

// ledger is what the handlers wrote, what was killed, and what the stores say in the end.
type ledger struct {
	jobs  int
	rig   *rig
	runs  []run
	kills []kill
}

type kill struct {
	pid int
	at  time.Time // the process was gone by then
}

func (l *ledger) cut() (n int) {
	for _, r := range l.runs {
		if r.End.IsZero() {
			n++
		}
	}
	return n
}

func (l *ledger) read(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ledger-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no ledger files: %v", err)
	}
	type id struct {
		key     string
		attempt int
		token   int64
		pid     int
	}
	byID := make(map[id]int)
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var r run
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				continue // the last line of a killed process may be cut
			}
			key := id{r.Key, r.Attempt, r.Token, r.PID}
			if i, seen := byID[key]; seen && !r.End.IsZero() {
				l.runs[i] = r
				continue
			}
			byID[key] = len(l.runs)
			l.runs = append(l.runs, r)
		}
		_ = f.Close() // it was only read
	}
}
