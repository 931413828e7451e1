package dlqtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/queue"
)

// OpenMemory opens an empty store in memory.
func OpenMemory(t testing.TB) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
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

// Letter returns the dead letter of job n, as a worker puts it. change may be nil.
func Letter(t testing.TB, n int, change func(*queue.Envelope)) dlq.Entry {
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

// PutAll puts entries. Call it in a synctest bubble: it lets a moment pass, since a replay takes only what is older than itself.
func PutAll(t testing.TB, store dlq.Store, entries ...dlq.Entry) {
	t.Helper()
	for _, err := range store.Put(t.Context(), entries) {
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Millisecond) // virtual in a bubble
}
