package dlqtest

import (
	"errors"
	"time"

	"github.com/caisson-go/caisson/dlq"
)

func removalTests() []testCase {
	return []testCase{
		{"Purge/drops the message and keeps the entry", testPurge},
		{"Purge/many", testPurgeMany},
		{"Purge/passes over what is reserved", testPurgeReserved},
		{"Purge/held and replayed only if asked", testPurgeStates},
		{"Expire/unchanged entries go, held ones stay", testExpire},
		{"Expire/passes over what is reserved", testExpireReserved},
		{"Expire/limit is honoured", testExpireLimit},
	}
}

func (e *env) purge(f dlq.Filter, want int) {
	e.Helper()
	n, err := e.store.Purge(e.Context(), f)
	if err != nil || n != want {
		e.Fatalf("purged %d, %v, want %d", n, err, want)
	}
}

func testPurge(e *env) {
	stored := e.some(2)
	before := e.get(stored[0])
	e.tick()
	e.purge(dlq.Filter{IDs: stored[:1]}, 1)
	got := e.get(stored[0])
	if got.State != dlq.StatePurged || len(got.Message.Body) != 0 || len(got.Message.Headers) != 0 || !got.ChangedAt.After(before.ChangedAt) {
		e.Errorf("purged entry: %+v", got)
	}
	if got.Error != before.Error || got.Kind != before.Kind || got.Fingerprint != before.Fingerprint {
		e.Errorf("a purge lost what people look for: %+v", got)
	}
	e.purge(dlq.Filter{IDs: stored[:1], States: dlq.States()}, 0)
	e.wantState(stored[1], dlq.StateDead)
}

func testPurgeMany(e *env) {
	const n = 450 // more than a store may do in one step
	entries := make([]dlq.Entry, n)
	for i := range entries {
		entries[i] = e.entry()
	}
	e.store.Put(e.Context(), entries)
	e.purge(e.all(), n)
	if left := e.count(e.all()); left != 0 {
		e.Errorf("%d dead letters left", left)
	}
}

func testPurgeReserved(e *env) {
	stored := e.some(2)
	e.reserve("o", dlq.Filter{IDs: stored[:1]}, 1, e.short)
	e.purge(e.all(), 1)
	e.resolve("o", stored[0], dlq.StateDead, nil)
	e.purge(e.all(), 1)

	stored = e.some(1)
	e.reserve("o", e.all(), 1, e.short)
	e.pass(e.short)
	e.purge(e.all(), 1)
	e.resolve("o", stored[0], dlq.StateReplayed, dlq.ErrNotReserved)
}

func testPurgeStates(e *env) {
	dead := e.some(2)
	held := e.put(e.held())
	e.reserve("o", dlq.Filter{IDs: dead[:1]}, 1, long)
	e.resolve("o", dead[0], dlq.StateReplayed, nil)
	e.purge(e.all(), 1)
	e.wantState(dead[0], dlq.StateReplayed)
	e.wantState(held[0], dlq.StateHeld)
	e.purge(e.all(dlq.StateHeld, dlq.StateReplayed), 2)
}

func (e *env) expire(retention time.Duration, limit int) int {
	e.Helper()
	n, err := e.store.Expire(e.Context(), retention, limit)
	if err != nil || n > limit {
		e.Fatalf("expired %d with a limit of %d: %v", n, limit, err)
	}
	return n
}

// expireAll removes everything that is due.
func (e *env) expireAll(retention time.Duration) {
	e.Helper()
	for e.expire(retention, 1000) > 0 {
	}
}

func (e *env) gone(id string) {
	e.Helper()
	if _, err := e.store.Get(e.Context(), id); !errors.Is(err, dlq.ErrNotFound) {
		e.Errorf("entry %s is still there: %v", id, err)
	}
}

func testExpire(e *env) {
	stored := e.some(3)
	held := e.put(e.held())[0]
	e.expireAll(long)
	e.wantState(stored[0], dlq.StateDead)
	e.purge(dlq.Filter{IDs: stored[1:2]}, 1)
	e.pass(e.short)
	// A change of state starts the time anew.
	e.reserve("o", dlq.Filter{IDs: stored[2:]}, 1, long)
	e.resolve("o", stored[2], dlq.StateReplayed, nil)
	fresh := e.some(1)[0]
	e.expireAll(e.short)
	e.gone(stored[0])
	e.gone(stored[1])
	e.wantState(stored[2], dlq.StateReplayed)
	e.wantState(fresh, dlq.StateDead)
	e.wantState(held, dlq.StateHeld)
}

func testExpireReserved(e *env) {
	id := e.some(1)[0]
	e.reserve("o", e.all(), 1, long)
	e.pass(e.short)
	e.expireAll(e.short)
	e.resolve("o", id, dlq.StateReplayed, nil)
}

func testExpireLimit(e *env) {
	e.some(7)
	e.pass(e.short)
	total := 0
	for range 7 {
		total += e.expire(e.short, 3)
	}
	if left := e.count(e.all()); left != 0 || total < 7 {
		e.Errorf("expired %d, %d left", total, left)
	}
	if n := e.expire(e.short, 0); n != 0 {
		e.Errorf("expired %d with a limit of 0", n)
	}
}
