package dlqtest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
)

func countTests() []testCase {
	return []testCase{
		{"Groups/by what they died of, largest first", testGroups},
		{"Depth/follows every change", testDepth},
	}
}

func testGroups(e *env) {
	var times []dlq.Entry
	for i := range 5 {
		entry := e.entry()
		entry.Error = fmt.Sprintf("row %d of 10.0.0.%d failed", i, i)
		times = append(times, e.get(e.put(entry)[0]))
	}
	for range 2 {
		entry := e.entry()
		entry.Destination = "elsewhere"
		e.put(entry)
	}
	timeout := e.entry()
	timeout.Cause = dlq.CauseTimeout
	e.put(timeout, e.held())

	groups, err := e.store.Groups(e.Context(), e.all())
	if err != nil || len(groups) != 3 {
		e.Fatalf("%d groups, %v, want 3: %+v", len(groups), err, groups)
	}
	g := groups[0]
	want := dlq.Group{
		Kind: "storetest", Destination: "dest", Cause: dlq.CauseExhausted, Fingerprint: dlq.FingerprintError(times[0].Error), Count: 5,
		FirstAt: times[0].StoredAt, LastAt: times[4].StoredAt, Sample: g.Sample,
	}
	if diff := cmp.Diff(want, g); diff != "" {
		e.Errorf("largest group (-want +got):\n%s", diff)
	}
	if dlq.FingerprintError(g.Sample) != g.Fingerprint {
		e.Errorf("sample %q is not of the group", g.Sample)
	}
	if groups[1].Count != 2 || groups[1].Destination != "elsewhere" || groups[2].Count != 1 || groups[2].Cause != dlq.CauseTimeout {
		e.Errorf("smaller groups: %+v", groups[1:])
	}
	held, err := e.store.Groups(e.Context(), e.all(dlq.StateHeld))
	if err != nil || len(held) != 1 || held[0].Cause != dlq.CauseDestinationOpen {
		e.Errorf("held groups: %+v, %v", held, err)
	}
}

// depth returns this test's part of the depth.
func (e *env) depth() (dead map[dlq.Cause]int, held dlq.HeldDepth) {
	e.Helper()
	d, err := e.store.Depth(e.Context())
	if err != nil {
		e.Fatalf("depth: %v", err)
	}
	dead = map[dlq.Cause]int{}
	for _, x := range d.Dead {
		if x.Queue == e.queue {
			dead[x.Cause] += x.Count
		}
	}
	for _, x := range d.Held {
		if x.Destination == e.queue {
			held = x
		}
	}
	return dead, held
}

func (e *env) wantDepth(what string, exhausted, timeouts, held int) {
	e.Helper()
	d, h := e.depth()
	if d[dlq.CauseExhausted] != exhausted || d[dlq.CauseTimeout] != timeouts || h.Count != held {
		e.Errorf("%s: depth %v, held %d, want %d exhausted, %d timeouts, %d held", what, d, h.Count, exhausted, timeouts, held)
	}
}

func testDepth(e *env) {
	e.wantDepth("empty", 0, 0, 0)
	dead := e.some(3)
	timeout := e.entry()
	timeout.Cause = dlq.CauseTimeout
	first, second := e.held(), e.held()
	e.put(timeout)
	held := e.put(first, second)
	e.wantDepth("after put", 3, 1, 2)
	if _, h := e.depth(); !h.Oldest.Equal(e.get(held[0]).StoredAt) {
		e.Errorf("oldest held at %v", h.Oldest)
	}

	e.wantIDs("reserve", e.reserve("o", e.all(), 1, long), dead[:1])
	e.wantDepth("after reserve", 3, 1, 2)
	e.resolve("o", dead[0], dlq.StateReplayed, nil)
	e.wantDepth("after replay", 2, 1, 2)

	first.State, first.Cause = dlq.StateDead, dlq.CauseTimeout
	e.put(first)
	e.wantDepth("after an upgrade", 2, 2, 1)

	e.wantIDs("reserve", e.reserve("o", e.all(dlq.StateHeld), 1, long), held[1:])
	e.resolve("o", held[1], "", nil)
	if _, err := e.store.Purge(e.Context(), dlq.Filter{Queue: e.queue, Cause: dlq.CauseTimeout}); err != nil {
		e.Fatalf("purge: %v", err)
	}
	e.wantDepth("after release and purge", 2, 0, 0)
}
