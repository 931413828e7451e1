package dlqtest

import (
	"bytes"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
)

func putTests() []testCase {
	return []testCase{
		{"Put/everything comes back", testRoundTrip},
		{"Put/bytes unchanged", testBytes},
		{"Put/repeating changes nothing", testPutTwice},
		{"Put/another payload under one id is kept", testOtherPayload},
		{"Put/never reopens", testNeverReopens},
		{"Put/held becomes dead", testHeldBecomesDead},
		{"Put/dead never becomes held", testDeadStaysDead},
		{"Put/runs are apart", testRunsApart},
		{"Put/300 KB error is cut on a rune", testLongError},
		{"Put/bad entries are refused alone", testBadEntries},
		{"Put/one entry twice in a batch", testPutTwiceInBatch},
		{"Get/unknown", testGetUnknown},
	}
}

func testRoundTrip(e *env) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 123456000, time.UTC)
	want := dlq.Entry{
		Job: e.name("job"), Run: 2, State: dlq.StateDead, Queue: e.queue, Kind: "email.send", Key: "order \x00 7", Destination: "mail", Group: "order 7",
		Cause: dlq.CauseTimeout, Error: "no answer from 10.0.0.1 within 30s", AttemptCount: 5,
		Attempts: []dlq.FailedAttempt{
			{Number: 4, Started: at, Ended: at.Add(time.Second), Error: "früh"},
			{Number: 5, Started: at.Add(time.Minute), Ended: at.Add(2 * time.Minute), Error: "late"},
		},
		EnqueuedAt: at.Add(-time.Hour), FirstFailedAt: at, LastFailedAt: at.Add(2 * time.Minute),
		Message: queue.Message{Body: []byte(`{"a": 1}`), Headers: map[string]string{queue.HeaderEnvelope: "{}", "traceparent": "00-1"}},
	}
	before := time.Now().Truncate(time.Microsecond)
	id := e.put(want)[0]
	got := e.get(id)
	want.ID, want.Replays, want.Fingerprint = dlq.EntryID(want.Job, 2), 2, dlq.FingerprintError(want.Error)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(dlq.Entry{}, "StoredAt", "ChangedAt")); diff != "" {
		e.Errorf("entry changed (-put +got):\n%s", diff)
	}
	// A server's clock may differ from ours; it has to be a clock.
	if d := got.StoredAt.Sub(before); d < -time.Minute || d > time.Minute || !got.ChangedAt.Equal(got.StoredAt) {
		e.Errorf("stored at %v, changed at %v, put at %v", got.StoredAt, got.ChangedAt, before)
	}
	unknown := e.entry()
	id = e.put(unknown)[0]
	if got := e.get(id); !got.EnqueuedAt.IsZero() || !got.FirstFailedAt.IsZero() || !got.LastFailedAt.IsZero() || got.Attempts != nil {
		e.Errorf("unknown times came back as %v, %v, %v", got.EnqueuedAt, got.FirstFailedAt, got.LastFailedAt)
	}
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func testBytes(e *env) {
	raw := string(allBytes())
	for name, m := range map[string]queue.Message{
		"all bytes":     {Body: allBytes(), Headers: map[string]string{raw: raw, "": "", "\xff": "\xfe\x00", "a": strings.Repeat("ü", 5000)}},
		"empty":         {},
		"empty headers": {Body: []byte{0}, Headers: map[string]string{}},
		"1 MiB":         {Body: []byte(strings.Repeat("0123456789abcdef", 1<<16))},
	} {
		entry := e.entry()
		entry.Message = m
		id := e.put(entry)[0]
		reserved, err := e.store.Reserve(e.Context(), dlq.Filter{IDs: []string{id}}, dlq.Reservation{Owner: "o", For: long, Limit: 1})
		if err != nil || len(reserved) != 1 {
			e.Fatalf("%s: reserved %d, %v", name, len(reserved), err)
		}
		for _, got := range []queue.Message{e.get(id).Message, reserved[0].Message} {
			if !bytes.Equal(m.Body, got.Body) {
				e.Errorf("%s: body of %d bytes came back as %d others", name, len(m.Body), len(got.Body))
			}
			if diff := cmp.Diff(m.Headers, got.Headers, cmpopts.EquateEmpty()); diff != "" {
				e.Errorf("%s: headers changed (-put +got):\n%.2000s", name, diff)
			}
		}
	}
}

func testPutTwice(e *env) {
	entry := e.entry()
	id := e.put(entry)[0]
	first := e.get(id)
	entry.Error, entry.Queue, entry.Message.Headers = "another error", "elsewhere", nil
	e.put(entry)
	if diff := cmp.Diff(first, e.get(id)); diff != "" {
		e.Errorf("putting again changed the entry:\n%s", diff)
	}
}

func testOtherPayload(e *env) {
	for _, state := range []dlq.State{dlq.StateDead, dlq.StateHeld} {
		first := e.entry()
		first.State = state
		id := e.put(first)[0]
		before := e.get(id)
		second := first
		second.State, second.Message.Body = dlq.StateDead, []byte("another")
		e.put(second, second, first)
		if diff := cmp.Diff(before, e.get(id)); diff != "" {
			e.Errorf("another payload changed a %s entry:\n%s", state, diff)
		}
		other := e.get(dlq.OtherEntryID(second.Job, second.Run, second.Message.Body))
		if other.State != dlq.StateDead || string(other.Message.Body) != "another" || other.Job != first.Job || other.Run != first.Run {
			e.Errorf("the second payload came back as %+v", other)
		}
		if n := e.count(dlq.Filter{Queue: e.queue, States: dlq.States()}); n%2 != 0 {
			e.Errorf("%d entries, want two for each state", n)
		}
	}
}

func testNeverReopens(e *env) {
	entries := []dlq.Entry{e.entry(), e.entry()}
	closed := e.put(entries...)
	e.wantIDs("reserve", e.reserve("o", e.all(), 1, long), closed[:1])
	e.resolve("o", closed[0], dlq.StateReplayed, nil)
	if n, err := e.store.Purge(e.Context(), e.all()); n != 1 || err != nil {
		e.Fatalf("purged %d, %v", n, err)
	}
	before := []dlq.Entry{e.get(closed[0]), e.get(closed[1])}
	for _, state := range []dlq.State{dlq.StateDead, dlq.StateHeld} {
		for _, entry := range entries {
			entry.State = state
			e.put(entry)
		}
		if diff := cmp.Diff(before, []dlq.Entry{e.get(closed[0]), e.get(closed[1])}); diff != "" {
			e.Errorf("a late %s changed closed entries:\n%s", state, diff)
		}
	}
}

func testHeldBecomesDead(e *env) {
	entry := e.held()
	id := e.put(entry)[0]
	e.wantIDs("reserve", e.reserve("release", e.all(dlq.StateHeld), 1, long), []string{id})
	held := e.get(id)
	entry.State, entry.Cause, entry.Error = dlq.StateDead, dlq.CauseExpired, "too old"
	e.put(entry)
	got := e.get(id)
	if got.State != dlq.StateDead || got.Cause != dlq.CauseExpired || got.Error != "too old" || !got.StoredAt.After(held.StoredAt) {
		e.Errorf("upgraded entry: %+v", got)
	}
	if diff := cmp.Diff(held.Message, got.Message); diff != "" {
		e.Errorf("upgrade changed the message:\n%s", diff)
	}
	// The release that held it lost it: it must not remove a dead letter.
	e.resolve("release", id, "", dlq.ErrNotReserved)
	e.wantIDs("reserve", e.reserve("replay", e.all(), 1, long), []string{id})
}

func testDeadStaysDead(e *env) {
	entry := e.entry()
	id := e.put(entry)[0]
	e.wantIDs("reserve", e.reserve("o", e.all(), 1, long), []string{id})
	entry.State = dlq.StateHeld
	e.put(entry)
	e.wantState(id, dlq.StateDead)
	e.resolve("o", id, dlq.StateReplayed, nil)
}

func testRunsApart(e *env) {
	entry := e.entry()
	next := entry
	next.Run = 1
	ids := e.put(entry, next)
	if ids[0] == ids[1] || e.get(ids[0]).Run != 0 || e.get(ids[1]).Run != 1 || e.get(ids[1]).Replays != 1 {
		e.Errorf("runs %v share an entry", ids)
	}
}

// Field case G1 (a).
func testLongError(e *env) {
	entry := e.entry()
	entry.Error = strings.Repeat("ä€𝄞", 34_000)
	entry.Attempts = []dlq.FailedAttempt{{Number: 1, Error: entry.Error}, {Number: 2, Error: "\xff\x00 not text"}}
	got := e.get(e.put(entry)[0])
	if n := len(got.Error); n > dlq.MaxError || n < dlq.MaxError-utf8.UTFMax || !utf8.ValidString(got.Error) {
		e.Errorf("error of %d bytes kept as %d, valid %v", len(entry.Error), n, utf8.ValidString(got.Error))
	}
	for _, a := range got.Attempts {
		if len(a.Error) > dlq.MaxAttemptError || !utf8.ValidString(a.Error) {
			e.Errorf("attempt %d: error kept as %d bytes, valid %v", a.Number, len(a.Error), utf8.ValidString(a.Error))
		}
	}
}

func testBadEntries(e *env) {
	noJob, replayed, good := e.entry(), e.entry(), e.entry()
	noJob.Job = ""
	replayed.State = dlq.StateReplayed
	errs := e.store.Put(e.Context(), []dlq.Entry{noJob, good, replayed})
	if errs[0] == nil || errs[1] != nil || errs[2] == nil {
		e.Errorf("put answers %v, want an error for the first and the last", errs)
	}
	if n := e.count(e.all(dlq.States()...)); n != 1 {
		e.Errorf("%d entries stored, want 1", n)
	}
}

func testPutTwiceInBatch(e *env) {
	held := e.held()
	dead := held
	dead.State = dlq.StateDead
	for i, err := range e.store.Put(e.Context(), []dlq.Entry{held, held, dead, held}) {
		if err != nil {
			e.Errorf("item %d: %v", i, err)
		}
	}
	e.wantState(dlq.EntryID(held.Job, 0), dlq.StateDead)
	if errs := e.store.Put(e.Context(), nil); len(errs) != 0 {
		e.Errorf("empty batch got %d answers", len(errs))
	}
}

func testGetUnknown(e *env) {
	if _, err := e.store.Get(e.Context(), e.name("unknown")); !errors.Is(err, dlq.ErrNotFound) {
		e.Errorf("get answers %v, want ErrNotFound", err)
	}
}
