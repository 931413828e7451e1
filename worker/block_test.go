package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/worker"
)

// journal is a handler that writes down what it ran and fails for jobs whose id begins with "bad" until they are mended.
type journal struct {
	mu     sync.Mutex
	ran    []string
	mended bool
	// foreign has messages without an envelope fail, too.
	foreign bool
}

func (j *journal) handle(_ context.Context, job *worker.Job) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ran = append(j.ran, fmt.Sprintf("%s.%d", job.ID, job.Run))
	if bad := strings.HasPrefix(job.ID, "bad") || j.foreign && strings.HasPrefix(job.ID, worker.DefaultQueue); bad && !j.mended {
		return errBoom
	}
	return nil
}

func (j *journal) mend() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mended = true
}

func (j *journal) want(t *testing.T, what string, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if diff := cmp.Diff(want, j.ran); diff != "" {
		t.Errorf("%s: ran (-want +got):\n%s", what, diff)
	}
}

// onGroups runs do on a FIFO queue whose jobs have one attempt.
func onGroups(t *testing.T, block bool, do func(f *field, j *journal)) {
	t.Helper()
	j, registry := &journal{}, worker.NewRegistry()
	work(registry, "job", worker.KindConfig{MaxAttempts: 1}, j.handle)
	cfg := worker.Config{Registry: registry, Queues: []worker.QueueConfig{{Name: worker.DefaultQueue, DefaultKind: "job", BlockOnDead: block}}}
	inField(t, fieldConfig{caps: queue.Capabilities{FIFO: true, MaxRetryDelay: 12 * time.Hour}, worker: cfg}, func(f *field) { do(f, j) })
}

func TestGroupGoesOnBehindItsDead(t *testing.T) {
	t.Parallel()
	onGroups(t, false, func(f *field, j *journal) {
		f.add("g", "bad", "after")
		f.after(time.Second)
		j.want(t, "a second later", "bad.0", "after.0")
		j.mend()
		f.replay()
		f.after(time.Second)
		j.want(t, "after the replay", "bad.0", "after.0", "bad.1")
	})
}

// A dead job keeps its place, tells so once, and holds up nobody but its own group.
func TestBlockedGroupWaits(t *testing.T) {
	t.Parallel()
	onGroups(t, true, func(f *field, j *journal) {
		f.add("g", "bad", "after")
		f.add("h", "other")
		f.after(12 * time.Hour)
		slices.Sort(j.ran)
		j.want(t, "half a day later", "bad.0", "other.0")
		if e := f.entry("bad", 0); e.State != dlq.StateDead || e.AttemptCount != 1 {
			t.Errorf("entry %+v", e)
		}
		deadLetters, looks := 0, 0
		for _, s := range f.settled("bad") {
			switch {
			case s.Settlement == worker.SettlementDeadLetter:
				deadLetters++
			case s.Reason == worker.ReasonBlocked:
				looks++
			}
		}
		if deadLetters != 1 || looks < 20 || looks > 60 {
			t.Errorf("told of %d dead letters, looked %d times", deadLetters, looks)
		}
		if _, err := f.dead.Purge(f.ctx, dlq.Filter{}); err != nil {
			t.Fatal(err)
		}
		f.after(31 * time.Minute)
		j.want(t, "after the purge", "bad.0", "other.0", "after.0")
		if n := f.left(); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	})
}

// What was replayed runs at the head of its group, before what came after it. The copy at the group's end runs nothing.
func TestReplayOfABlockedJobRunsInItsPlace(t *testing.T) {
	t.Parallel()
	onGroups(t, true, func(f *field, j *journal) {
		f.add("g", "bad", "after")
		f.after(time.Second)
		j.mend()
		f.replay()
		f.after(2 * time.Minute)
		j.want(t, "after the replay", "bad.0", "bad.1", "after.0")
		if s := f.settled("bad"); s[len(s)-1].Outcome != worker.OutcomeDuplicate || f.left() != 0 {
			t.Errorf("the copy ended as %s, %d messages are left", s[len(s)-1].Outcome, f.left())
		}
	})
}

// A replayed run that dies again blocks again, as the run that it was, and can be replayed again.
func TestReplayedRunBlocksAgain(t *testing.T) {
	t.Parallel()
	onGroups(t, true, func(f *field, j *journal) {
		f.add("g", "bad", "after")
		f.after(time.Second)
		f.replay()
		f.after(2 * time.Minute)
		j.want(t, "after the first replay", "bad.0", "bad.1")
		if e := f.entry("bad", 1); e.State != dlq.StateDead {
			t.Errorf("the second run's entry is %s", e.State)
		}
		j.mend()
		f.replay()
		f.after(10 * time.Minute)
		j.want(t, "after the second replay", "bad.0", "bad.1", "bad.2", "after.0")
		if n := f.left(); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	})
}

// A job that waited at the head for longer than its max age is replayed all the same: the replay is when its waiting began.
func TestReplayOfAnOldBlockedJob(t *testing.T) {
	t.Parallel()
	onGroups(t, true, func(f *field, j *journal) {
		f.add("g", "bad", "after")
		f.after(40 * time.Hour)
		if e := f.entry("bad", 0); e.Cause != dlq.CauseExhausted {
			t.Errorf("the entry became %s by waiting", e.Cause)
		}
		if n := len(f.settled("bad")); n > 120 {
			t.Errorf("looked %d times in 40 hours", n)
		}
		j.mend()
		f.replay()
		f.after(31 * time.Minute)
		j.want(t, "after the replay", "bad.0", "bad.1") // what waited behind it is too old by now
		if e := f.entry("after", 0); e.Cause != dlq.CauseExpired {
			t.Errorf("the job behind it ended as %s", e.Cause)
		}
	})
}

// A replay that drops the deadline of a blocked job drops it at the head, too.
func TestReplayOfABlockedJobWithoutItsDeadline(t *testing.T) {
	t.Parallel()
	onGroups(t, true, func(f *field, j *journal) {
		client, err := worker.NewClient(worker.ClientConfig{Broker: f.fake})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Enqueue(f.ctx, worker.NewJob{Kind: "job", ID: "bad", Destination: "g", Deadline: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		f.add("g", "after")
		f.after(2 * time.Hour)
		j.mend()
		r, err := replay.New(replay.Config{Store: f.dead, Broker: f.fake, DropDeadline: true})
		if err != nil {
			t.Fatal(err)
		}
		if report, err := r.Run(f.ctx); err != nil || report.Replayed != 1 {
			t.Fatalf("%+v, %v", report, err)
		}
		f.after(31 * time.Minute)
		j.want(t, "after the replay", "bad.0", "bad.1", "after.0")
	})
}

// The ledger forgets a closed run after two days. The dead letter does not, and the job stays where it is.
func TestBlockedJobOutlivesItsLedger(t *testing.T) {
	t.Parallel()
	onGroups(t, true, func(f *field, j *journal) {
		f.add("g", "bad", "after")
		f.after(6 * 24 * time.Hour)
		j.want(t, "days later", "bad.0")
		if n := f.left(); n != 2 {
			t.Errorf("%d messages are left, want both", n)
		}
	})
}

// A foreign message has no number of its run: its replay is a job of its own at the end of the group, and its place is given up.
func TestReplayOfABlockedForeignMessage(t *testing.T) {
	t.Parallel()
	onGroups(t, true, func(f *field, j *journal) {
		j.mu.Lock()
		j.foreign = true
		j.mu.Unlock()
		f.fake.Publish(f.ctx, worker.DefaultQueue, []queue.Publication{{Message: queue.Message{Body: []byte("raw")}, Group: "g"}})
		f.after(time.Second)
		f.add("g", "after")
		j.mend()
		f.replay()
		f.after(2 * time.Minute)
		j.want(t, "after the replay", "default:1.0", "after.0", "default:3.0")
		if n := f.left(); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	})
}

// A message that nobody can read blocks its group until it is purged.
func TestUndecodableMessageBlocks(t *testing.T) {
	t.Parallel()
	onGroups(t, true, func(f *field, j *journal) {
		bad := queue.Message{Headers: map[string]string{queue.HeaderEnvelope: "{"}}
		f.fake.Publish(f.ctx, worker.DefaultQueue, []queue.Publication{{Message: bad, Group: "g"}})
		f.add("g", "after")
		f.after(time.Hour)
		j.want(t, "an hour later")
		deadLetters := 0
		for _, s := range f.settled("") {
			if s.Settlement == worker.SettlementDeadLetter {
				deadLetters++
			}
		}
		if deadLetters != 1 {
			t.Errorf("told of %d dead letters", deadLetters)
		}
		if n, err := f.dead.Purge(f.ctx, dlq.Filter{}); n != 1 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
		f.after(31 * time.Minute)
		j.want(t, "after the purge", "after.0")
	})
}

// A worker that dies between storing the dead letter and closing the run leaves a job that is dead all the same.
func TestDeadLetterWithoutAClosedRunBlocks(t *testing.T) {
	t.Parallel()
	onGroups(t, true, func(f *field, j *journal) {
		env := queue.Envelope{ID: "bad", Kind: "job", EnqueuedAt: time.Now()}
		m, err := queue.NewMessage(env, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := dlq.Entry{Job: "bad", State: dlq.StateDead, Queue: worker.DefaultQueue, Kind: "job", Cause: dlq.CauseExhausted, Error: "boom", Message: m}
		if err := f.dead.Put(f.ctx, []dlq.Entry{e})[0]; err != nil {
			t.Fatal(err)
		}
		f.fake.seen = 1
		f.fake.Publish(f.ctx, worker.DefaultQueue, []queue.Publication{{Message: m, Group: "g"}})
		f.fake.seen = 0
		f.add("g", "after")
		f.after(time.Hour)
		j.want(t, "an hour later")
		rec, err := f.claims.Get(f.ctx, idempotency.Key{Scope: "job", Value: "bad"})
		if err != nil || !rec.Closed || f.left() != 2 {
			t.Errorf("%d messages are left, the run is not closed: %+v, %v", f.left(), rec, err)
		}
	})
}
