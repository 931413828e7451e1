package dlqtest

import (
	"errors"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
)

func resolveTests() []testCase {
	return []testCase{
		{"Resolve/replayed once", testResolveReplayed},
		{"Resolve/given back unchanged", testGiveBack},
		{"Resolve/released held entries are removed", testRemoveHeld},
		{"Resolve/held again while it is released", testHeldAgain},
		{"Resolve/only what makes sense", testResolveTransitions},
		{"Resolve/batch answers item by item", testResolveBatch},
	}
}

func testResolveReplayed(e *env) {
	id := e.some(1)[0]
	e.resolve("o", id, dlq.StateReplayed, dlq.ErrNotReserved)
	e.reserve("o", e.all(), 1, long)
	before := e.get(id)
	e.tick()
	e.resolve("o", id, dlq.StateReplayed, nil)
	got := e.get(id)
	if got.State != dlq.StateReplayed || !got.ChangedAt.After(before.ChangedAt) || !got.StoredAt.Equal(before.StoredAt) {
		e.Errorf("replayed entry: %+v, before %+v", got, before)
	}
	if diff := cmp.Diff(before.Message, got.Message); diff != "" {
		e.Errorf("a replay changed the message:\n%s", diff)
	}
	e.resolve("o", id, dlq.StateReplayed, dlq.ErrNotReserved)
	e.resolve("o", id, dlq.StateDead, dlq.ErrNotReserved)
	e.wantState(id, dlq.StateReplayed)
}

func testGiveBack(e *env) {
	dead, held := e.some(1)[0], e.put(e.held())[0]
	before := []dlq.Entry{e.get(dead), e.get(held)}
	e.reserve("o", e.all(dlq.StateDead, dlq.StateHeld), 2, long)
	e.resolve("o", dead, dlq.StateDead, nil)
	e.resolve("o", held, dlq.StateHeld, nil)
	if diff := cmp.Diff(before, []dlq.Entry{e.get(dead), e.get(held)}); diff != "" {
		e.Errorf("given back changed:\n%s", diff)
	}
	e.wantIDs("reserve", e.reserve("p", e.all(dlq.StateDead, dlq.StateHeld), 2, long), []string{dead, held})
}

func testRemoveHeld(e *env) {
	entry := e.held()
	id := e.put(entry)[0]
	e.reserve("o", e.all(dlq.StateHeld), 1, long)
	e.resolve("o", id, "", nil)
	if _, err := e.store.Get(e.Context(), id); !errors.Is(err, dlq.ErrNotFound) {
		e.Errorf("a released entry is still there: %v", err)
	}
	e.resolve("o", id, "", dlq.ErrNotReserved)
	// The same run may be held, or die, later.
	e.put(entry)
	e.wantState(id, dlq.StateHeld)
}

// The destination is still sick: the released job comes back and is held again before its release was marked. The worker has acked
// it, so that the entry is all there is.
func testHeldAgain(e *env) {
	entry := e.held()
	id := e.put(entry)[0]
	e.reserve("release", e.all(dlq.StateHeld), 1, long)
	e.put(entry)
	e.resolve("release", id, "", dlq.ErrNotReserved)
	e.wantState(id, dlq.StateHeld)
	e.wantIDs("reserve", e.reserve("next", e.all(dlq.StateHeld), 1, long), []string{id})
}

func testResolveTransitions(e *env) {
	dead, held := e.some(1)[0], e.put(e.held())[0]
	e.reserve("o", e.all(dlq.StateDead, dlq.StateHeld), 2, long)
	for _, r := range []dlq.Resolution{
		{ID: dead, To: dlq.StateHeld},
		{ID: dead},
		{ID: dead, To: dlq.StatePurged},
		{ID: held, To: dlq.StateReplayed},
		{ID: held, To: dlq.StateDead},
		{ID: held, To: "nonsense"},
	} {
		errs := e.store.Resolve(e.Context(), "o", []dlq.Resolution{r})
		if errs[0] == nil || errors.Is(errs[0], dlq.ErrNotReserved) {
			e.Errorf("resolve %s as %q answers %v, want an error of its own", r.ID, r.To, errs[0])
		}
	}
	// Refused resolutions leave the reservation as it was.
	e.resolve("o", dead, dlq.StateReplayed, nil)
	e.resolve("o", held, "", nil)
}

func testResolveBatch(e *env) {
	stored := e.some(3)
	e.reserve("o", dlq.Filter{IDs: []string{stored[0], stored[2]}}, 2, long)
	errs := e.store.Resolve(e.Context(), "o", []dlq.Resolution{
		{ID: stored[0], To: dlq.StateReplayed},
		{ID: stored[1], To: dlq.StateReplayed},
		{ID: "unknown", To: dlq.StateReplayed},
		{ID: stored[2], To: dlq.StateReplayed},
	})
	for i, want := range []error{nil, dlq.ErrNotReserved, dlq.ErrNotReserved, nil} {
		if !errors.Is(errs[i], want) {
			e.Errorf("item %d answers %v, want %v", i, errs[i], want)
		}
	}
	if errs := e.store.Resolve(e.Context(), "o", nil); len(errs) != 0 {
		e.Errorf("empty batch got %d answers", len(errs))
	}
}
