package fleettest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caisson-go/caisson/internal/fleet"
)

func boundTests() []testCase {
	return []testCase{
		{"Bounds/the worst destinations are kept and the rest is counted", testMany},
		{"Bounds/shared destinations are cut and counted", testShared},
		{"Bounds/texts are cut and mended", testTexts},
		{"Bounds/publishers of any name", testAnyID},
	}
}

func testMany(e *env) {
	r := e.report("a")
	for i := range 5000 {
		r.Destinations = append(r.Destinations, fleet.Destination{Name: fmt.Sprintf("%05d.example.com", i), State: "half_open", Waiting: i})
	}
	r.Destinations[17].State = "open"
	e.publish(r)
	got := e.one()
	if len(got.Destinations) != fleet.MaxDestinations || got.More != 5000-fleet.MaxDestinations {
		e.Fatalf("%d destinations and %d more, want %d of 5000", len(got.Destinations), got.More, fleet.MaxDestinations)
	}
	if first, second := got.Destinations[0], got.Destinations[1]; first.Name != "00017.example.com" || second.Waiting != 5000-fleet.MaxDestinations+1 {
		e.Errorf("first of those kept: %+v, then %+v; want the open one, then those with most jobs waiting, by name", first, second)
	}
	if len(r.Destinations) != 5000 {
		e.Error("the caller's report was changed")
	}
}

func testShared(e *env) {
	r := e.report("a")
	for i := range fleet.MaxShared + 3 {
		r.Shared = append(r.Shared, fmt.Sprintf("%05d.example.com", i))
	}
	r.Shared[1] = strings.Repeat("n", 1000)
	e.publish(r)
	if got := e.one(); len(got.Shared) != fleet.MaxShared || got.MoreShared != 3 || len(got.Shared[1]) != fleet.MaxName {
		e.Errorf("%d shared destinations and %d more, the second of %d bytes", len(got.Shared), got.MoreShared, len(got.Shared[1]))
	}
	if len(r.Shared) != fleet.MaxShared+3 || len(r.Shared[1]) != 1000 {
		e.Error("the caller's report was changed")
	}
}

func testTexts(e *env) {
	r := e.report("a")
	r.NotReady = strings.Repeat("ü", fleet.MaxText) + "\xff"
	r.Queues = []fleet.Queue{{Name: strings.Repeat("q", 1000)}}
	r.Owner = "o\xffwner\x00"
	e.publish(r)
	got := e.one()
	if len(got.NotReady) > fleet.MaxText || !utf8.ValidString(got.NotReady) || !strings.HasPrefix(got.NotReady, "üü") {
		e.Errorf("not ready: %d bytes, %q", len(got.NotReady), got.NotReady)
	}
	if len(got.Queues[0].Name) != fleet.MaxName || got.Owner != "o\uFFFDwner\x00" {
		e.Errorf("queue of %d bytes, owner %q", len(got.Queues[0].Name), got.Owner)
	}
	if r.Queues[0].Name == got.Queues[0].Name {
		e.Error("the caller's report was changed")
	}
}

func testAnyID(e *env) {
	for _, id := range []string{"\x00", "\xff", "'\"%", strings.Repeat("i", 200)} {
		r := e.report(id)
		e.publish(r)
		e.publish(r)
		if n := len(e.reports()); n != 1 {
			e.Errorf("publisher %.20q has %d reports", id, n)
		}
		if err := e.store.Remove(e.Context(), r.ID); err != nil {
			e.Fatalf("remove: %v", err)
		}
		e.wants()
	}
}
