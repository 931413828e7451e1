package dlq_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/queue"
)

func TestMain(m *testing.M) {
	if told := os.Getenv(replayChildEnv); told != "" {
		replayChild(told)
		return
	}
	goleak.VerifyTestMain(m)
}

// sent is one confirmed message.
type sent struct {
	queue.Publication
	queue string
	at    time.Time
}

// broker records what it confirms, and fails or calls back as told.
type broker struct {
	mu    sync.Mutex
	calls int
	sizes []int // bytes of each call
	seen  int
	sent  []sent
	// fail returns the error for the nth publication, counted from 1.
	fail func(queue string, n int) error
	// then runs after a message was confirmed, before Publish returns.
	then func(s sent)
}

func (b *broker) Publish(_ context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	size := 0
	results := make([]queue.PublishResult, len(pubs))
	for i, p := range pubs {
		size += len(p.Body)
		b.seen++
		if b.fail != nil {
			if err := b.fail(name, b.seen); err != nil {
				results[i].Err = err
				continue
			}
		}
		p.Headers = maps.Clone(p.Headers)
		s := sent{p, name, time.Now()}
		b.sent = append(b.sent, s)
		if b.then != nil {
			b.then(s)
		}
	}
	b.sizes = append(b.sizes, size)
	return results
}

// jobs counts the confirmed messages by job and run.
func (b *broker) jobs(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, s := range b.sent {
		env, err := s.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		counts[dlq.EntryID(env.ID, env.Run)]++
	}
	return counts
}

func openStore(t testing.TB) *sqlite.Store {
	t.Helper()
	file, err := sqlitefile.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return storeIn(t, file)
}

func storeIn(t testing.TB, file *sqlitefile.File) *sqlite.Store {
	t.Helper()
	store, err := sqlite.New(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// letter returns the dead letter of job n, as a worker puts it.
func letter(t testing.TB, n int, change func(*queue.Envelope)) dlq.Entry {
	t.Helper()
	env := queue.Envelope{
		ID: fmt.Sprintf("job-%d", n), Kind: "email.send", Key: fmt.Sprintf("order-%d", n), EnqueuedAt: time.Now().Add(-72 * time.Hour), AttemptBase: 2,
		Headers: map[string]string{"traceparent": "00-abc"},
	}
	if change != nil {
		change(&env)
	}
	m, err := queue.NewMessage(env, fmt.Appendf(nil, "payload of %s \x00\xff", env.ID))
	if err != nil {
		t.Fatal(err)
	}
	m.Headers["reply-to"] = "somewhere \xff"
	return dlq.Entry{
		Job: env.ID, Run: env.Run, State: dlq.StateDead, Queue: "mail", Kind: env.Kind, Key: env.Key, Destination: "smtp", Cause: dlq.CauseExhausted,
		Error: "boom", Message: m,
	}
}

func putAll(t testing.TB, store dlq.Store, entries ...dlq.Entry) {
	t.Helper()
	for _, err := range store.Put(t.Context(), entries) {
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Millisecond) // a replay takes what is older than itself; virtual in a bubble
}

// putLetters puts the dead letters of jobs 0 to n-1.
func putLetters(t testing.TB, store dlq.Store, n int) {
	t.Helper()
	entries := make([]dlq.Entry, n)
	for i := range entries {
		entries[i] = letter(t, i, nil)
	}
	putAll(t, store, entries...)
}

func replay(ctx context.Context, t testing.TB, cfg dlq.ReplayConfig) (dlq.Report, error) {
	t.Helper()
	r, err := dlq.NewReplay(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r.Run(ctx)
}

func wantCounts(t testing.TB, store dlq.Store, dead, replayed int) {
	t.Helper()
	for state, want := range map[dlq.State]int{dlq.StateDead: dead, dlq.StateReplayed: replayed} {
		n, err := store.Count(t.Context(), dlq.Filter{States: []dlq.State{state}})
		if err != nil || n != want {
			t.Errorf("%d entries are %s, %v, want %d", n, state, err, want)
		}
	}
}

// wantEachOnce fails unless run 1 of jobs 0 to n-1 was confirmed exactly once each.
func wantEachOnce(t *testing.T, b *broker, n int) {
	t.Helper()
	jobs := b.jobs(t)
	for i := range n {
		if id := fmt.Sprintf("job-%d.1", i); jobs[id] != 1 {
			t.Errorf("%s was published %d times", id, jobs[id])
		}
	}
	if len(jobs) != n {
		t.Errorf("%d jobs were published, want %d", len(jobs), n)
	}
}
