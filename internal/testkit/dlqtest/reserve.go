package dlqtest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/caisson-go/caisson/dlq"
)

func reserveTests() []testCase {
	return []testCase{
		{"Reserve/oldest first, each once", testReserveOrder},
		{"Reserve/exclusive between owners", testReserveExclusive},
		{"Reserve/runs out", testReserveRunsOut},
		{"Reserve/by filter", testReserveFilter},
		{"Reserve/dead and held only", testReserveStates},
		{"Reserve/cut by bytes", testReserveBytes},
		{"Reserve/many owners at once", testReserveConcurrently},
		{"Reserve/refuses bad arguments", testReserveArguments},
	}
}

func testReserveOrder(e *env) {
	stored := e.some(5)
	e.wantIDs("first", e.reserve("o", e.all(), 2, long), stored[:2])
	e.wantIDs("second", e.reserve("o", e.all(), 2, long), stored[2:4])
	e.wantIDs("third", e.reserve("o", e.all(), 2, long), stored[4:])
	e.wantIDs("fourth", e.reserve("o", e.all(), 2, long), []string{})
}

func testReserveExclusive(e *env) {
	stored := e.some(3)
	e.wantIDs("a", e.reserve("a", e.all(), 2, long), stored[:2])
	e.wantIDs("b", e.reserve("b", e.all(), 3, long), stored[2:])
	e.resolve("b", stored[0], dlq.StateReplayed, dlq.ErrNotReserved)
	e.resolve("b", stored[0], dlq.StateDead, dlq.ErrNotReserved)
	e.resolve("a", stored[0], dlq.StateDead, nil)
	e.wantIDs("b again", e.reserve("b", e.all(), 3, long), stored[:1])
	e.resolve("a", stored[0], dlq.StateReplayed, dlq.ErrNotReserved)
	e.resolve("b", stored[0], dlq.StateReplayed, nil)
	// Reserving hides nothing from people.
	e.wantIDs("list", e.pages(e.all(), 10, nil), []string{stored[2], stored[1]})
}

func testReserveRunsOut(e *env) {
	stored := e.some(2)
	e.wantIDs("a", e.reserve("a", e.all(), 2, e.short), stored)
	e.pass(e.short)
	e.wantIDs("b", e.reserve("b", e.all(), 1, long), stored[:1])
	e.resolve("a", stored[0], dlq.StateReplayed, dlq.ErrNotReserved)
	// Nobody else took the second: a late mark is better than a second publish.
	e.resolve("a", stored[1], dlq.StateReplayed, nil)
}

func testReserveFilter(e *env) {
	other := e.entry()
	other.Kind = "other"
	stored := append(e.some(1), e.put(other)...)
	f := e.all()
	f.Kind = "other"
	e.wantIDs("by kind", e.reserve("o", f, 10, long), stored[1:])
	f = e.all()
	f.IDs = stored
	e.wantIDs("by id", e.reserve("o", f, 10, long), stored[:1])
}

func testReserveStates(e *env) {
	stored := e.some(3)
	held := e.put(e.held())
	e.reserve("o", dlq.Filter{IDs: stored[:1]}, 1, long)
	e.resolve("o", stored[0], dlq.StateReplayed, nil)
	if _, err := e.store.Purge(e.Context(), dlq.Filter{IDs: stored[1:2]}); err != nil {
		e.Fatalf("purge: %v", err)
	}
	e.wantIDs("dead by default", e.reserve("o", e.all(), 10, long), stored[2:])
	e.wantIDs("held", e.reserve("o", e.all(dlq.StateHeld), 10, long), held)
	e.wantIDs("closed ones", e.reserve("o", e.all(dlq.StateReplayed, dlq.StatePurged), 10, long), []string{})
	e.resolve("o", stored[2], dlq.StateDead, nil)
	e.resolve("o", held[0], dlq.StateHeld, nil)
	e.wantIDs("any", e.reserve("o", e.all(dlq.States()...), 10, long), []string{stored[2], held[0]})
}

func testReserveBytes(e *env) {
	var entries []dlq.Entry
	for _, size := range []int{100, 50, 50, 300, 10} {
		entry := e.entry()
		entry.Message.Body = make([]byte, size)
		entries = append(entries, entry)
	}
	stored := e.put(entries...)
	reserve := func() []string {
		got, err := e.store.Reserve(e.Context(), e.all(), dlq.Reservation{Owner: "o", For: long, Limit: 10, MaxBytes: 200})
		if err != nil {
			e.Fatalf("reserve: %v", err)
		}
		return ids(got)
	}
	e.wantIDs("what fits exactly", reserve(), stored[:3])
	e.wantIDs("one that is too large alone", reserve(), stored[3:4])
	e.wantIDs("the rest", reserve(), stored[4:])
}

func testReserveConcurrently(e *env) {
	stored := e.some(200)
	var mu sync.Mutex
	var got []string
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for {
				entries, err := e.store.Reserve(e.Context(), e.all(), dlq.Reservation{Owner: fmt.Sprint(i), For: long, Limit: 7})
				if err != nil {
					e.Errorf("reserve: %v", err)
				}
				if len(entries) == 0 {
					return
				}
				mu.Lock()
				got = append(got, ids(entries)...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(got)
	slices.Sort(stored)
	e.wantIDs("all owners together", got, stored)
}

func testReserveArguments(e *env) {
	e.some(1)
	for name, r := range map[string]dlq.Reservation{
		"no owner": {For: long, Limit: 1}, "no time": {Owner: "o", Limit: 1}, "no limit": {Owner: "o", For: long},
	} {
		if got, err := e.store.Reserve(e.Context(), e.all(), r); err == nil {
			e.Errorf("%s: reserved %d, want an error", name, len(got))
		}
	}
}
