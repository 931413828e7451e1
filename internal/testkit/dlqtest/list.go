package dlqtest

import (
	"errors"
	"slices"
	"time"

	"github.com/caisson-go/caisson/dlq"
)

func listTests() []testCase {
	return []testCase{
		{"List/newest first in pages", testPaging},
		{"List/pages are stable while entries come and go", testStablePaging},
		{"List/entries put together", testPagingOneBatch},
		{"List/leaves messages out", testListWithoutMessages},
		{"List/refuses bad arguments", testListArguments},
		{"Filter/selects what it says", testFilters},
		{"Filter/text", testTextFilter},
		{"Filter/job", testJobFilter},
		{"Filter/JSON agrees with the reference", testJSONFilter},
		{"Filter/JSON in every operation", testJSONOperations},
	}
}

// pages lists f in pages of limit and returns all ids. between runs after each page.
func (e *env) pages(f dlq.Filter, limit int, between func()) []string {
	e.Helper()
	var all []string
	for after := ""; ; {
		entries, next, err := e.store.List(e.Context(), f, after, limit)
		if err != nil {
			e.Fatalf("list: %v", err)
		}
		if len(entries) > limit {
			e.Fatalf("page of %d with a limit of %d", len(entries), limit)
		}
		all = append(all, ids(entries)...)
		if next == "" {
			return all
		}
		if between != nil {
			between()
		}
		after = next
	}
}

func testPaging(e *env) {
	want := reversed(e.some(10))
	for _, limit := range []int{1, 3, 5, 10, 11, 1000} {
		e.wantIDs("pages", e.pages(e.all(), limit, nil), want)
	}
	other := e.held()
	want = append(e.put(other), want...)
	e.wantIDs("two states", e.pages(e.all(dlq.StateHeld, dlq.StateDead), 4, nil), want)
}

func testStablePaging(e *env) {
	want := reversed(e.some(12))
	gone := want[4] // the second page's second
	got := e.pages(e.all(), 3, func() {
		e.some(1)
		if _, err := e.store.Purge(e.Context(), dlq.Filter{IDs: []string{gone, want[0]}}); err != nil {
			e.Fatalf("purge: %v", err)
		}
	})
	e.wantIDs("pages", got, slices.DeleteFunc(want, func(id string) bool { return id == gone }))
}

func testPagingOneBatch(e *env) {
	entries := make([]dlq.Entry, 20)
	for i := range entries {
		entries[i] = e.entry()
	}
	e.store.Put(e.Context(), entries)
	got := e.pages(e.all(), 3, nil)
	slices.Sort(got)
	if len(slices.Compact(got)) != len(entries) {
		e.Errorf("pages hold %d of %d entries put together", len(got), len(entries))
	}
}

func testListWithoutMessages(e *env) {
	e.some(1)
	entries, _, err := e.store.List(e.Context(), e.all(), "", 10)
	if err != nil || len(entries) != 1 {
		e.Fatalf("list: %d, %v", len(entries), err)
	}
	if m := entries[0].Message; len(m.Body) != 0 || len(m.Headers) != 0 {
		e.Errorf("list carries the message %q", m)
	}
}

func testListArguments(e *env) {
	e.some(2)
	if _, _, err := e.store.List(e.Context(), e.all(), "not a cursor", 1); !errors.Is(err, dlq.ErrCursor) {
		e.Errorf("a made-up cursor is answered with %v", err)
	}
	if _, _, err := e.store.List(e.Context(), e.all(), "", 0); err == nil {
		e.Error("a limit of 0 is taken")
	}
	if _, _, err := e.store.List(e.Context(), dlq.Filter{States: []dlq.State{"deid"}}, "", 1); err == nil {
		e.Error("a misspelt state is taken")
	}
}

func testFilters(e *env) {
	a, b, held := e.entry(), e.entry(), e.held()
	b.Kind, b.Destination, b.Cause, b.Error = "other", "elsewhere", dlq.CauseTimeout, "deadline exceeded"
	stored := e.put(a, b, held)
	at := func(i int) time.Time { return e.get(stored[i]).StoredAt }
	for name, tc := range map[string]struct {
		filter dlq.Filter
		want   []int
	}{
		"dead by default":    {dlq.Filter{}, []int{1, 0}},
		"held":               {dlq.Filter{States: []dlq.State{dlq.StateHeld}}, []int{2}},
		"all states":         {dlq.Filter{States: dlq.States()}, []int{2, 1, 0}},
		"no such state":      {dlq.Filter{States: []dlq.State{dlq.StatePurged}}, nil},
		"kind":               {dlq.Filter{Kind: "other"}, []int{1}},
		"destination":        {dlq.Filter{Destination: "dest"}, []int{0}},
		"cause":              {dlq.Filter{Cause: dlq.CauseTimeout}, []int{1}},
		"fingerprint":        {dlq.Filter{Fingerprint: dlq.FingerprintError("boom")}, []int{0}},
		"ids":                {dlq.Filter{IDs: []string{stored[0], "unknown", "'); --"}}, []int{0}},
		"ids and state":      {dlq.Filter{IDs: stored[:], States: []dlq.State{dlq.StateHeld}}, []int{2}},
		"since is inclusive": {dlq.Filter{Since: at(1)}, []int{1}},
		"until is exclusive": {dlq.Filter{Until: at(1)}, []int{0}},
		"since and until":    {dlq.Filter{Since: at(0), Until: at(1).Add(1)}, []int{1, 0}},
		"all must match":     {dlq.Filter{Kind: "other", Destination: "dest"}, nil},
	} {
		tc.filter.Queue = e.queue
		var want []string
		for _, i := range tc.want {
			want = append(want, stored[i])
		}
		e.wantIDs(name, e.pages(tc.filter, 10, nil), want)
		if n := e.count(tc.filter); n != len(want) {
			e.Errorf("%s: count %d, want %d", name, n, len(want))
		}
	}
}

func testTextFilter(e *env) {
	a, b := e.entry(), e.entry()
	a.Error, b.Error = "Dial TCP: Connection Refused 100%", "größer als erlaubt: a_b"
	stored := e.put(a, b)
	for text, want := range map[string][]string{
		"connection refused": stored[:1], "DIAL": stored[:1], "größer": stored[1:], "100%": stored[:1], "%": stored[:1], "a_b": stored[1:],
		"axb": nil, "'": nil, "e": reversed(stored),
	} {
		e.wantIDs("text "+text, e.pages(dlq.Filter{Queue: e.queue, Text: text}, 10, nil), want)
	}
}
