package storetest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/idempotency"
)

// finderTests are those of [idempotency.Finder], for stores that say they are one.
func (h Harness) finderTests() []testCase {
	if !h.Finder {
		return []testCase{{"Find/not offered", testNoFinder}}
	}
	return []testCase{
		{"Find/by key in every scope", testFindKey},
		{"Find/by job under another key", testFindJob},
		{"Find/every run of a job", testFindRuns},
		{"Find/a job that lost its key to another", testFindLoser},
		{"Find/text of any bytes, and nothing else", testFindExact},
		{"Find/is bounded", testFindBound},
	}
}

func testNoFinder(e *env) {
	if _, ok := e.store.(idempotency.Finder); ok {
		e.Error("the store is a Finder: set Harness.Finder")
	}
}

// find returns the records found, one line each.
func (e *env) find(text string) []string {
	e.Helper()
	f, err := e.store.(idempotency.Finder).Find(e.Context(), text)
	if err != nil {
		e.Fatalf("find %q: %v", text, err)
	}
	if f.Now.IsZero() || f.More {
		e.Errorf("find %q: now %v, more %t", text, f.Now, f.More)
	}
	var lines []string
	for _, r := range f.Records {
		lines = append(lines, fmt.Sprintf("key %q/%q state %d of %s.%d attempt %d closed %t history %d", r.Key.Scope, r.Key.Value, r.State, r.Job, r.Run,
			r.Attempt, r.Closed, len(r.History)))
	}
	return lines
}

func (e *env) finds(text string, want ...string) {
	e.Helper()
	if diff := cmp.Diff(want, e.find(text)); diff != "" {
		e.Errorf("find %q (-want +got):\n%s", text, diff)
	}
}

func line(k idempotency.Key, state idempotency.Status, job string, run, attempt int, closed bool, history int) string {
	return fmt.Sprintf("key %q/%q state %d of %s.%d attempt %d closed %t history %d", k.Scope, k.Value, state, job, run, attempt, closed, history)
}

func testFindKey(e *env) {
	a := e.request()
	e.finds(a.Key.Value)
	e.acquire(a, 1)
	b := e.sharing(a)
	b.Key.Scope = "storetest2"
	e.complete(e.acquire(b, 1), "done", nil)
	e.finds(a.Key.Value, line(a.Key, idempotency.StatusAcquired, a.Job, 0, 1, false, 0), line(b.Key, idempotency.StatusCompleted, b.Job, 0, 1, false, 0))
	rec := e.get(a.Key)
	f, err := e.store.(idempotency.Finder).Find(e.Context(), a.Key.Value)
	if err != nil {
		e.Fatal(err)
	}
	if diff := cmp.Diff(rec, f.Records[0]); diff != "" {
		e.Errorf("found is not what Get returns (-get +found):\n%s", diff)
	}
	if wait := f.Records[0].Until.Sub(f.Now); wait <= 0 || wait > long {
		e.Errorf("claim runs out in %v of %v", wait, long)
	}
}

func testFindJob(e *env) {
	r := e.request()
	r.Key.Value = e.name("key")
	e.fail(idempotency.Failure{Handle: e.acquire(r, 1), Delay: long, Attempt: idempotency.Attempt{Number: 1, Error: "boom"}}, nil)
	want := line(r.Key, 0, r.Job, 0, 1, false, 1)
	e.finds(r.Key.Value, want)
	e.finds(r.Job, want)
}

func testFindRuns(e *env) {
	r := e.request()
	for run := range 3 {
		r.Run = run
		e.fail(idempotency.Failure{Handle: e.acquire(r, 1), Final: true, Attempt: idempotency.Attempt{Number: 1, Error: "boom"}}, nil)
	}
	r.Run = 3
	e.acquire(r, 1)
	none := idempotency.Key{}
	e.finds(r.Job, line(r.Key, idempotency.StatusAcquired, r.Job, 3, 1, false, 0), line(none, 0, r.Job, 2, 1, true, 1),
		line(none, 0, r.Job, 1, 1, true, 1), line(none, 0, r.Job, 0, 1, true, 1))
}

func testFindLoser(e *env) {
	first := e.request()
	first.Key.Value = e.name("key")
	e.fail(idempotency.Failure{Handle: e.acquire(first, 1)}, nil)
	second := e.sharing(first)
	e.complete(e.acquire(second, 1), "", nil)
	done := line(first.Key, idempotency.StatusCompleted, second.Job, 0, 1, false, 0)
	e.finds(first.Key.Value, done)
	e.finds(second.Job, done)
	e.finds(first.Job, line(idempotency.Key{}, 0, first.Job, 0, 1, false, 1))
}

func testFindExact(e *env) {
	base := e.name("x")
	for _, value := range []string{base, base + "\x00", base + "%", base + "\xff", base + "\xfe", "_" + base, base + "A", base + "a"} {
		r := e.request()
		r.Key.Value = value
		e.acquire(r, 1)
		e.finds(value, line(r.Key, idempotency.StatusAcquired, r.Job, 0, 1, false, 0))
	}
	e.finds(base + "\x00\x00")
}

func testFindBound(e *env) {
	value := e.name("shared")
	var reqs []idempotency.Request
	for i := range idempotency.MaxFound + 1 {
		r := e.request()
		r.Key = idempotency.Key{Scope: fmt.Sprintf("scope-%03d", i), Value: value}
		reqs = append(reqs, r)
	}
	for _, c := range e.store.Claim(e.Context(), reqs) {
		if c.Status != idempotency.StatusAcquired {
			e.Fatalf("claim: %v, %v", c.Status, c.Err)
		}
	}
	f, err := e.store.(idempotency.Finder).Find(e.Context(), value)
	if err != nil {
		e.Fatal(err)
	}
	scopes := map[string]bool{}
	for _, r := range f.Records {
		scopes[r.Key.Scope] = true
	}
	if !f.More || len(scopes) != idempotency.MaxFound {
		e.Errorf("%d records of %d scopes, more %t", len(f.Records), len(scopes), f.More)
	}
}
