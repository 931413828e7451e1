package brokerdlqtest

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/queue"
)

func mirrorTests() []testCase {
	return []testCase{
		{"Mirror/copies follow their entries", testMirror},
	}
}

// A copy stays while its entry is dead, whatever else lies beside it, and is never taken for a dead letter of its own.
func testMirror(e *env) {
	store := e.h.Store(e.T)
	m, err := brokerdlq.NewMirror(brokerdlq.MirrorConfig{Store: store, Queues: e.letters, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		e.Fatal(err)
	}
	entries := e.some(4)
	entries[2].Message = queue.Message{Body: []byte("\x00no envelope"), Headers: map[string]string{"x": "y"}}
	other := entries[3]
	other.Message.Body = []byte("another payload under the same id")
	held := e.letter("held", func(_ *queue.Envelope, entry *dlq.Entry) {
		entry.State, entry.Cause = dlq.StateHeld, dlq.CauseDestinationOpen
	})
	if err := errors.Join(m.Put(e.Context(), append(entries, other, held))...); err != nil {
		e.Fatal(err)
	}
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		e.Fatal(err)
	}
	if s := m.Stats(); s != (brokerdlq.MirrorStats{Copied: 5}) {
		e.Fatalf("%+v, want 5 copied", s)
	}
	foreign := queue.Message{Body: []byte{0xff, 0, 1}, Headers: map[string]string{"theirs": "kept"}}
	e.publish(queue.DLQ(e.queue), foreign)
	e.sweep(store, brokerdlq.ImportReport{Imported: 1, Mirrored: 5})
	e.sweep(store, brokerdlq.ImportReport{Mirrored: 5})

	known, _, err := store.List(e.Context(), dlq.Filter{Cause: dlq.CauseBroker}, "", 10)
	if err != nil || len(known) != 1 {
		e.Fatalf("%d entries of the broker, %v; want the foreign message alone", len(known), err)
	}
	got, err := store.Get(e.Context(), known[0].ID)
	if diff := cmp.Diff(foreign, got.Message); diff != "" || err != nil {
		e.Errorf("%v; foreign message (-sent +stored):\n%s", err, diff)
	}

	taken, err := store.Reserve(e.Context(), dlq.Filter{IDs: []string{"job-0.0"}}, dlq.Reservation{Owner: "o", For: time.Hour, Limit: 10})
	if err != nil || len(taken) != 1 {
		e.Fatalf("reserved %d, %v", len(taken), err)
	}
	e.sweep(store, brokerdlq.ImportReport{Mirrored: 5}) // on its way is not gone
	if err := errors.Join(store.Resolve(e.Context(), "o", []dlq.Resolution{{ID: "job-0.0", To: dlq.StateReplayed}})...); err != nil {
		e.Fatal(err)
	}
	if n, err := store.Purge(e.Context(), dlq.Filter{IDs: []string{"job-1.0"}}); err != nil || n != 1 {
		e.Fatalf("purged %d, %v", n, err)
	}
	e.sweep(store, brokerdlq.ImportReport{Mirrored: 3, Outdated: 2})
	left := slices.Sorted(maps.Keys(e.sample(e.all())))
	want := []string{"job-2.0", "job-3.0", dlq.OtherEntryID("job-3", 0, other.Message.Body)}
	if !slices.Equal(left, want) && !slices.Equal(left, []string{"job-2.0", "job-3.0", dlq.OtherEntryID("job-3", 0, entries[3].Message.Body)}) {
		e.Errorf("left %v, want %v", left, want)
	}
}

// sweep goes once over this test's dead letters.
func (e *env) sweep(store dlq.Store, want brokerdlq.ImportReport) {
	e.Helper()
	letters := e.open(brokerdlq.Config{Queues: []string{e.queue}})
	got, err := letters.Sweep(e.Context(), store)
	for until := time.Now().Add(time.Minute); err == nil && got == (brokerdlq.ImportReport{}) && time.Now().Before(until); {
		time.Sleep(100 * time.Millisecond) // counts lag
		got, err = letters.Sweep(e.Context(), store)
	}
	got.ScanReport = brokerdlq.ScanReport{}
	if err != nil || got != want {
		e.Fatalf("swept %+v, %v; want %+v", got, err, want)
	}
}
