package breaker

import (
	"testing"

	"pgregory.net/rapid"
)

// event is one completed call in the reference: the plain list that a window condenses.
type event struct {
	slot  int64
	o     Outcome
	times uint64
}

// tallyOf counts the events of the ten slots that end with last.
func tallyOf(events []event, last int64) tally {
	var t tally
	for _, e := range events {
		if e.slot <= last-buckets {
			continue
		}
		t.calls += e.times
		switch e.o {
		case OutcomeFailure:
			t.failures += e.times
		case OutcomeSlow:
			t.slow += e.times
		}
	}
	return t
}

func TestWindowMatchesAListOfCalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(1<<32-30, 1<<32+30).Draw(t, "first slot") // across the wrap
		w := &window{head: uint32(first)}
		now, events := first, []event(nil)
		if rapid.Bool().Draw(t, "nearly wide") {
			w.small.cells[0] = cell[uint16]{1<<16 - 20, 7, 3}
			w.small.sum = w.small.cells[0]
			events = append(events, event{first, OutcomeSuccess, 1<<16 - 30}, event{first, OutcomeFailure, 7}, event{first, OutcomeSlow, 3})
		}
		for range rapid.IntRange(1, 120).Draw(t, "calls") {
			// Steps are mostly small, sometimes beyond the window, sometimes back.
			at := now + int64(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 2, 5, 9, 10, 11, 1000, -1, -50}).Draw(t, "step"))
			now = max(now, at)
			o := rapid.SampledFrom([]Outcome{OutcomeSuccess, OutcomeFailure, OutcomeSlow}).Draw(t, "outcome")
			w.record(uint32(at), o)
			events = append(events, event{now, o, 1}) // time that runs back counts as now
			if got, want := w.sum(), tallyOf(events, now); got != want {
				t.Fatalf("after a call in slot %d: %+v, want %+v", at, got, want)
			}
		}
		at := now + int64(rapid.IntRange(0, 12).Draw(t, "idle"))
		if got, want := w.tally(uint32(at)), tallyOf(events, at); got != want {
			t.Fatalf("idle until %d: %+v, want %+v", at, got, want)
		}
	})
}

func TestWindowRebaseKeepsTheCounts(t *testing.T) {
	t.Parallel()
	for _, calls := range []int{30, 100_000} {
		w := &window{}
		for i := range calls {
			w.record(uint32(i%3), OutcomeFailure)
		}
		before := w.sum()
		w.rebase(77)
		if got := w.tally(86); got != before {
			t.Errorf("%+v, want %+v", got, before)
		}
		if got := w.tally(87); got != (tally{}) {
			t.Errorf("a window later: %+v", got)
		}
	}
}
