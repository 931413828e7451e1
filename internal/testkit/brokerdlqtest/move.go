package brokerdlqtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/queue"
)

func moveTests() []testCase {
	return []testCase{
		{"Import/everything", testImport},
		{"Import/only what matches", testImportMatching},
		{"Import/cut off between store and ack", testImportCutOff},
		{"Import/store down", testImportStoreDown},
		{"Import/what the store has closed stays closed", testImportClosed},
		{"Purge", testPurge},
		{"Purge/stops where too many are kept", testPurgeBound},
	}
}

func (e *env) count(store dlq.Store, states ...dlq.State) int {
	e.Helper()
	n, err := store.Count(e.Context(), dlq.Filter{States: states})
	if err != nil {
		e.Fatal(err)
	}
	return n
}

func testImport(e *env) {
	store := e.h.Store(e.T)
	entry := e.letter("imported", func(_ *queue.Envelope, entry *dlq.Entry) { entry.Group = "g" })
	e.put(entry)
	want := e.one()
	e.moved(queue.Message{Body: []byte("foreign")}, queue.Message{Body: []byte("broken"), Headers: map[string]string{queue.HeaderEnvelope: "{"}})
	report, err := e.letters.Import(e.Context(), store, e.all())
	if err != nil || report.Imported != 3 || report.Incomplete {
		e.Fatalf("report %+v, %v", report, err)
	}
	got, err := store.Get(e.Context(), "imported.0")
	if err != nil {
		e.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(dlq.Entry{}, "StoredAt", "ChangedAt")); diff != "" {
		e.Errorf("imported entry (-want +got):\n%s", diff)
	}
	e.wantLeft(0)
	if n := e.count(store); n != 3 {
		e.Errorf("%d in the store, want 3", n)
	}
	if report, err = e.letters.Import(e.Context(), store, e.all()); err != nil || report.Imported != 0 {
		e.Errorf("a second import: %+v, %v", report, err)
	}
}

func testImportMatching(e *env) {
	store, entries := e.h.Store(e.T), e.some(e.h.Jobs)
	e.put(entries...)
	n := len(ofKind(entries, "sms.send"))
	report, err := e.letters.Import(e.Context(), store, dlq.Filter{Queue: e.queue, Kind: "sms.send"})
	if err != nil || report.Imported != n || report.PassedOver != len(entries)-n || e.count(store) != n {
		e.Errorf("report %+v, %v; %d in the store", report, err, e.count(store))
	}
	e.wantLeft(len(entries) - n)
}

// answers is a store that does what it is told and says something else.
type answers struct {
	dlq.Store
	err   error
	store bool
}

func (a answers) Put(ctx context.Context, entries []dlq.Entry) []error {
	var errs []error
	if a.store {
		a.Store.Put(ctx, entries)
	}
	for range entries {
		errs = append(errs, a.err)
	}
	return errs
}

func testImportCutOff(e *env) {
	store, entries := e.h.Store(e.T), e.some(20)
	e.put(entries...)
	lost := errors.New("lost answer")
	report, err := e.letters.Import(e.Context(), answers{store, lost, true}, e.all())
	if !errors.Is(err, lost) || report.Imported != 0 || report.Failed == 0 {
		e.Errorf("report %+v, %v", report, err)
	}
	imported := 0
	eventually.NoError(e, func() error { // what was given back may be on its way
		report, err := e.letters.Import(e.Context(), store, e.all())
		if imported += report.Imported; err == nil && imported != 20 {
			err = fmt.Errorf("%d were imported, want 20", imported)
		}
		return err
	})
	if n := e.count(store); n != 20 {
		e.Errorf("%d in the store, want 20", n)
	}
}

func testImportStoreDown(e *env) {
	e.put(e.some(5)...)
	report, err := e.letters.Import(e.Context(), answers{nil, dlq.ErrUnavailable, false}, e.all())
	if !errors.Is(err, dlq.ErrUnavailable) || report.Imported != 0 {
		e.Errorf("report %+v, %v", report, err)
	}
	e.wantLeft(5)
}

func testImportClosed(e *env) {
	store, entry := e.h.Store(e.T), e.letter("closed", nil)
	e.put(entry)
	if _, err := e.letters.Import(e.Context(), store, e.all()); err != nil {
		e.Fatal(err)
	}
	if n, err := store.Purge(e.Context(), dlq.Filter{}); n != 1 || err != nil {
		e.Fatalf("purged %d, %v", n, err)
	}
	e.put(entry) // a late copy
	if report, err := e.letters.Import(e.Context(), store, e.all()); err != nil || report.Imported != 1 {
		e.Errorf("report %+v, %v", report, err)
	}
	if e.count(store, dlq.StatePurged) != 1 || e.count(store) != 0 {
		e.Error("a late copy opened a purged entry again")
	}
}

func testPurge(e *env) {
	entries := e.some(10)
	e.put(entries...)
	purged, scanned, err := e.letters.Purge(e.Context(), dlq.Filter{Queue: e.queue, Kind: "sms.send"})
	if err != nil || purged != 4 || scanned.PassedOver != 6 {
		e.Errorf("purged %d, %+v, %v", purged, scanned, err)
	}
	for id, entry := range e.sample(e.all()) {
		if entry.Kind == "sms.send" {
			e.Errorf("%s is still there", id)
		}
	}
	if purged, scanned, err = e.letters.Purge(e.Context(), e.all()); err != nil || purged != 6 {
		e.Errorf("purged %d, %+v, %v", purged, scanned, err)
	}
}

func testPurgeBound(e *env) {
	e.put(e.some(20)...)
	letters := e.open(brokerdlq.Config{MaxKept: 5})
	purged, scanned, err := letters.Purge(e.Context(), dlq.Filter{Queue: e.queue, Kind: "none"})
	if !errors.Is(err, brokerdlq.ErrTooMany) || purged != 0 || !scanned.Incomplete {
		e.Errorf("purged %d, %+v, %v", purged, scanned, err)
	}
	e.wantLeft(20)
}
