package journaltest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/webhook/journal"
)

func attemptTests() []testCase {
	return []testCase{
		{"Attempt/comes back", testAttempt},
		{"Attempt/awkward texts", testAwkwardTexts},
		{"Attempts/newest first in pages", testAttemptPages},
		{"Attempts/filters", testAttemptFilters},
		{"Attempts/which events were tried", testTried},
	}
}

// attempt returns a fresh attempt at an endpoint of the test's own.
func (e *env) attempt(endpoint, event string, at time.Time) journal.Attempt {
	return journal.Attempt{
		Tenant: e.tenant, Endpoint: endpoint, Event: event, Job: endpoint + ":" + event, Number: 1, At: at.UTC().Truncate(time.Microsecond),
		Status: 200, Phase: "answered", Duration: 12345 * time.Microsecond, Excerpt: "ok", RequestID: "req_1",
	}
}

func (e *env) log(attempts ...journal.Attempt) {
	e.Helper()
	if err := e.store.Log(e.Context(), attempts); err != nil {
		e.Fatalf("log: %v", err)
	}
}

// attempts returns all attempts in pages of limit.
func (e *env) attempts(f journal.AttemptFilter, limit int) (all []journal.Attempt) {
	e.Helper()
	for after := ""; ; {
		page, next, err := e.store.Attempts(e.Context(), f, after, limit)
		if err != nil {
			e.Fatalf("attempts: %v", err)
		}
		if len(page) > limit {
			e.Fatalf("a page of %d with a limit of %d", len(page), limit)
		}
		if all = append(all, page...); next == "" {
			return all
		}
		after = next
	}
}

func (e *env) wantAttempts(what string, f journal.AttemptFilter, limit int, want ...journal.Attempt) {
	e.Helper()
	if diff := cmp.Diff(want, e.attempts(f, limit)); diff != "" {
		e.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func testAttempt(e *env) {
	endpoint := e.name("endpoint")
	good := e.attempt(endpoint, e.name("evt"), time.Now())
	bad := journal.Attempt{
		Tenant: e.tenant, Endpoint: endpoint, Event: good.Event, Job: "job", Number: 8, At: good.At.Add(-time.Second), Phase: "unknown, may have run",
		Duration: 26 * time.Second, Error: "timeout", Resent: true, CutOff: true,
	}
	e.log(good, bad)
	e.log()
	e.wantAttempts("both", journal.AttemptFilter{Endpoint: endpoint}, 10, good, bad)
}

// A receiver chooses the texts; none of them may keep the others of its batch from being kept.
func testAwkwardTexts(e *env) {
	endpoint := e.name("endpoint")
	a := e.attempt(endpoint, "evt\xff", time.Now())
	a.Excerpt, a.Error, a.RequestID = "nul\x00 \xc3( "+strings.Repeat("ä", 5000), "\xff\xfe\x00", strings.Repeat("\xf0\x9f\x92\xa9", 1000)
	b := e.attempt(endpoint, "evt", a.At.Add(-time.Second))
	e.log(a, b)
	got := e.attempts(journal.AttemptFilter{Endpoint: endpoint}, 10)
	if len(got) != 2 {
		e.Fatalf("%d attempts of 2 are kept", len(got))
	}
	want := a
	want.At = a.At.UTC().Truncate(time.Microsecond)
	want.Event, want.Job, want.Error = "evt\uFFFD", strings.ToValidUTF8(a.Job, "\uFFFD"), "\uFFFD\uFFFD"
	want.RequestID = strings.Repeat("\U0001F4A9", 256)
	want.Excerpt = "nul\uFFFD \uFFFD( " + strings.Repeat("ä", 2043)
	if diff := cmp.Diff(want, got[0]); diff != "" {
		e.Errorf("(-want +got):\n%s", diff)
	}
}

func testAttemptPages(e *env) {
	endpoint, event := e.name("endpoint"), e.name("evt")
	start := time.Now().Add(-time.Hour)
	var want []journal.Attempt
	for i := range 12 {
		want = append(want, e.attempt(endpoint, event, start.Add(time.Duration(i/2)*time.Second))) // two at a time
		want[i].Number = i + 1
	}
	e.log(want[6:]...)
	e.expire(long)
	e.log(want[:6]...)
	slices.Reverse(want)
	for _, limit := range []int{1, 5, 12, 100} {
		for _, f := range []journal.AttemptFilter{{Endpoint: endpoint}, {Event: event}, {Endpoint: endpoint, Event: event}, {Tenant: e.tenant}} {
			got := e.attempts(f, limit)
			if len(got) != 12 {
				e.Errorf("%+v in pages of %d: %d attempts of 12", f, limit, len(got))
			}
			if !slices.IsSortedFunc(got, func(a, b journal.Attempt) int { return b.At.Compare(a.At) }) {
				e.Errorf("%+v in pages of %d: not newest first", f, limit)
			}
			seen := make(map[int]bool)
			for _, a := range got {
				seen[a.Number] = true
			}
			if len(seen) != 12 {
				e.Errorf("%+v in pages of %d: %d different attempts of 12", f, limit, len(seen))
			}
		}
	}
}

func testAttemptFilters(e *env) {
	one, two, event := e.name("one"), e.name("two"), e.name("evt")
	now := time.Now()
	a := e.attempt(one, event, now.Add(-3*time.Second))
	b := e.attempt(one, e.name("evt"), now.Add(-2*time.Second))
	b.Status = 500
	c := e.attempt(two, event, now.Add(-time.Second))
	c.Status, c.Tenant = 0, e.name("tenant")
	for i, status := range []int{199, 300} {
		edge := e.attempt(one, e.name("evt"), now.Add(-time.Duration(i+10)*time.Second))
		edge.Status = status
		e.log(edge)
	}
	e.log(a, b, c)
	e.wantAttempts("by endpoint", journal.AttemptFilter{Endpoint: one, From: a.At}, 10, b, a)
	e.wantAttempts("by event", journal.AttemptFilter{Event: event}, 1, c, a)
	e.wantAttempts("by both", journal.AttemptFilter{Event: event, Endpoint: two}, 1, c)
	e.wantAttempts("by tenant", journal.AttemptFilter{Tenant: e.tenant, From: a.At}, 1, b, a)
	e.wantAttempts("by event and tenant", journal.AttemptFilter{Event: event, Tenant: e.tenant}, 1, a)
	e.wantAttempts("failed", journal.AttemptFilter{Endpoint: one, Failed: true, From: a.At}, 10, b)
	e.wantAttempts("failed of an event", journal.AttemptFilter{Event: event, Failed: true}, 10, c)
	e.wantAttempts("from", journal.AttemptFilter{Endpoint: one, From: b.At}, 10, b)
	e.wantAttempts("after from", journal.AttemptFilter{Endpoint: one, From: b.At.Add(time.Nanosecond)}, 10)
	e.wantAttempts("to", journal.AttemptFilter{Endpoint: one, From: a.At, To: b.At}, 10, a)
	if n := len(e.attempts(journal.AttemptFilter{Endpoint: one, Failed: true}, 1)); n != 3 {
		e.Errorf("%d failed attempts, want 3: 199, 300 and 500", n)
	}
}

func testTried(e *env) {
	endpoint, other := e.name("endpoint"), e.name("other")
	ids := make([]string, 6)
	for i := range ids {
		ids[i] = e.name(fmt.Sprint("evt", i))
	}
	failed := e.attempt(endpoint, ids[3], time.Now())
	failed.Status = 500
	foreign := e.attempt(endpoint, ids[5], time.Now())
	foreign.Tenant = e.name("tenant")
	e.log(e.attempt(endpoint, ids[0], time.Now()), e.attempt(other, ids[1], time.Now()), failed, foreign)
	e.expire(long)
	e.log(e.attempt(endpoint, ids[4], time.Now()), e.attempt(endpoint, ids[4], time.Now()))
	got, err := e.store.Tried(e.Context(), e.tenant, endpoint, ids)
	if err != nil {
		e.Fatal(err)
	}
	want := map[string]bool{ids[0]: true, ids[3]: true, ids[4]: true}
	if diff := cmp.Diff(want, got); diff != "" {
		e.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := e.store.Tried(e.Context(), e.tenant, endpoint, nil); err != nil || len(got) != 0 {
		e.Errorf("no events: %v, %v", got, err)
	}
}
