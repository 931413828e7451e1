package storetest

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-go/caisson/idempotency"
)

func ledgerTests() []testCase {
	return []testCase{
		{"Ledger/failures charge and abandons do not", testCharging},
		{"Ledger/a crash stays charged", testCrashCharges},
		{"Ledger/abandon after a crash", testAbandonAfterCrash},
		{"Ledger/attempt base counts once", testAttemptBase},
		{"Ledger/two jobs share a key but not the count", testSharedKey},
		{"Ledger/count follows the job to another key", testOtherKey},
		{"Ledger/failures are never cached", testFailuresNotCached},
		{"Ledger/history", testHistory},
		{"Ledger/history is bounded", testLongHistory},
		{"Ledger/closed run stays closed", testClosed},
		{"Ledger/replay of a closed run", testReplay},
		{"Ledger/completed by another job", testCompletedByOther},
	}
}

func testCharging(e *env) {
	r := e.request()
	for attempt := 1; attempt <= 5; attempt++ {
		e.abandon(e.acquire(r, attempt), 0, nil)
		e.abandon(e.acquire(r, attempt), 0, nil)
		e.fail(idempotency.Failure{Handle: e.acquire(r, attempt)}, nil)
	}
}

func testCrashCharges(e *env) {
	r := e.request()
	r.Lease = e.short
	e.acquire(r, 1)
	for attempt := 2; attempt <= 4; attempt++ {
		e.pass(e.short)
		e.acquire(r, attempt)
	}
}

func testAbandonAfterCrash(e *env) {
	r := e.request()
	r.Lease = e.short
	lost := e.acquire(r, 1)
	e.pass(e.short)
	r.Lease = long
	e.abandon(e.acquire(r, 2), 0, nil)
	// The number that was given back is the only one that comes again; the crashed attempt keeps its own.
	e.abandon(lost, 0, idempotency.ErrClaimLost)
	e.acquire(r, 2)
}

func testAttemptBase(e *env) {
	r := e.request()
	r.AttemptBase = 7
	e.fail(idempotency.Failure{Handle: e.acquire(r, 8)}, nil)
	r.AttemptBase = 20
	e.fail(idempotency.Failure{Handle: e.acquire(r, 9)}, nil)
	r.AttemptBase = 0
	e.acquire(r, 10)
}

func testSharedKey(e *env) {
	a := e.request()
	b := e.sharing(a)
	e.fail(idempotency.Failure{Handle: e.acquire(a, 1)}, nil)
	e.fail(idempotency.Failure{Handle: e.acquire(b, 1)}, nil)
	e.fail(idempotency.Failure{Handle: e.acquire(a, 2), Attempt: idempotency.Attempt{Number: 2, Error: "of a"}}, nil)
	e.fail(idempotency.Failure{Handle: e.acquire(b, 2), Attempt: idempotency.Attempt{Number: 2, Error: "of b"}}, nil)
	c := e.wants(a, idempotency.StatusAcquired)
	if c.Attempt != 3 || c.History[len(c.History)-1].Error != "of a" {
		e.Errorf("attempt %d with history %v, want 3 with the job's own", c.Attempt, c.History)
	}
	// One job gives up: the other goes on counting.
	e.fail(idempotency.Failure{Handle: heldBy(a, c), Final: true}, nil)
	e.wants(a, idempotency.StatusClosed)
	e.complete(e.acquire(b, 3), "by b", nil)
}

// A kind that was renamed, or whose key function changed, presents the same run under another key.
func testOtherKey(e *env) {
	r := e.request()
	e.fail(idempotency.Failure{Handle: e.acquire(r, 1)}, nil)
	r.Key.Scope = "renamed"
	e.fail(idempotency.Failure{Handle: e.acquire(r, 2)}, nil)
	r.Key.Value = e.name("key")
	e.fail(idempotency.Failure{Handle: e.acquire(r, 3)}, nil)
	r.Key = idempotency.Key{Scope: "storetest", Value: r.Job}
	e.fail(idempotency.Failure{Handle: e.acquire(r, 4), Final: true}, nil)
	r.Key.Scope = "renamed"
	e.wants(r, idempotency.StatusClosed)
}

// Field case H2: a failed attempt leaves nothing that a later one could be answered with.
func testFailuresNotCached(e *env) {
	r := e.request()
	e.fail(idempotency.Failure{Handle: e.acquire(r, 1), Attempt: idempotency.Attempt{Number: 1, Error: "passing"}}, nil)
	h := e.acquire(r, 2)
	e.complete(h, "worked", nil)
	if c := e.wants(r, idempotency.StatusCompleted); string(c.Result.Data) != "worked" {
		e.Errorf("result %q", c.Result.Data)
	}

	// A permanent error closes the run and caches nothing either: another job with the key really runs.
	r = e.request()
	e.fail(idempotency.Failure{Handle: e.acquire(r, 1), Final: true}, nil)
	e.wants(r, idempotency.StatusClosed)
	e.complete(e.acquire(e.sharing(r), 1), "by another", nil)
}

func testHistory(e *env) {
	r := e.request()
	started := time.Date(2026, 7, 1, 12, 0, 0, 123456000, time.UTC)
	for n := 1; n <= 3; n++ {
		c := e.wants(r, idempotency.StatusAcquired)
		if len(c.History) != n-1 {
			e.Fatalf("attempt %d has a history of %d", n, len(c.History))
		}
		for i, a := range c.History {
			if a.Number != i+1 || a.Error != fmt.Sprintf("boom %d", i+1) || !a.Started.Equal(started) || !a.Ended.Equal(started.Add(time.Second)) {
				e.Errorf("history[%d] is %+v", i, a)
			}
		}
		e.fail(idempotency.Failure{Handle: heldBy(r, c), Attempt: idempotency.Attempt{
			Number: n, Started: started, Ended: started.Add(time.Second), Error: fmt.Sprintf("boom %d", n),
		}}, nil)
	}
	h := e.acquire(r, 4)
	e.fail(idempotency.Failure{Handle: h, Final: true, Attempt: idempotency.Attempt{Number: 4, Error: strings.Repeat("€", 1000)}}, nil)
	rec := e.get(r.Key)
	if len(rec.History) != 4 {
		e.Fatalf("history of %d after the last failure, want 4", len(rec.History))
	}
	last := rec.History[3].Error
	if len(last) > idempotency.MaxAttemptError || len(last) < idempotency.MaxAttemptError-3 || !utf8.ValidString(last) {
		e.Errorf("long error kept as %d bytes, valid %v", len(last), utf8.ValidString(last))
	}
}

func testLongHistory(e *env) {
	r := e.request()
	const attempts = idempotency.MaxHistory + 6
	for n := 1; n <= attempts; n++ {
		e.fail(idempotency.Failure{Handle: e.acquire(r, n), Attempt: idempotency.Attempt{Number: n}}, nil)
	}
	c := e.wants(r, idempotency.StatusAcquired)
	if len(c.History) != idempotency.MaxHistory || c.History[len(c.History)-1].Number != attempts {
		e.Errorf("history of %d ends with %+v", len(c.History), c.History[len(c.History)-1])
	}
}

func testClosed(e *env) {
	r := e.request()
	e.fail(idempotency.Failure{Handle: e.acquire(r, 1), Final: true, Delay: long}, nil)
	e.wants(r, idempotency.StatusClosed)
	// Closed belongs to the run, whatever becomes of the key.
	other := e.sharing(r)
	other.Fingerprint = idempotency.FingerprintOf([]byte("another payload"))
	h := e.acquire(other, 1)
	e.wants(r, idempotency.StatusClosed)
	e.complete(h, "", nil)
	e.wants(r, idempotency.StatusClosed)
}

func testReplay(e *env) {
	r := e.request()
	e.fail(idempotency.Failure{Handle: e.acquire(r, 1), Attempt: idempotency.Attempt{Number: 1}}, nil)
	e.fail(idempotency.Failure{Handle: e.acquire(r, 2), Attempt: idempotency.Attempt{Number: 2}, Final: true}, nil)
	replay := r
	replay.Run = 1
	c := e.wants(replay, idempotency.StatusAcquired)
	if c.Attempt != 1 || len(c.History) != 0 {
		e.Errorf("a replay starts at attempt %d with history %v", c.Attempt, c.History)
	}
	e.wants(r, idempotency.StatusClosed)
	e.fail(idempotency.Failure{Handle: heldBy(replay, c)}, nil)
	h := e.acquire(replay, 2)
	e.wants(r, idempotency.StatusClosed)
	e.complete(h, "at last", nil)
	for _, late := range []idempotency.Request{r, replay} {
		e.wants(late, idempotency.StatusCompleted)
	}
}

func testCompletedByOther(e *env) {
	a := e.request()
	b := e.sharing(a)
	e.fail(idempotency.Failure{Handle: e.acquire(a, 1)}, nil)
	e.complete(e.acquire(b, 1), "by b", nil)
	if c := e.wants(a, idempotency.StatusCompleted); string(c.Result.Data) != "by b" {
		e.Errorf("result %q", c.Result.Data)
	}
}
