package endpointtest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

func recordTests() []testCase {
	return []testCase{
		{"Insert/is read as it was written", testInsert},
		{"Insert/refuses an id that is there", testInsertTwice},
		{"Insert/one of many at once wins", testInsertRace},
		{"Update/replaces all but the time of creation", testUpdate},
		{"Update/refuses another revision", testUpdateConflict},
		{"Update/one of many at once wins", testUpdateRace},
		{"Update/refuses what is not there", testUpdateUnknown},
		{"Delete/leaves nothing but a tombstone", testDelete},
		{"Delete/refuses another revision", testDeleteConflict},
		{"Delete/an id can be used again", testInsertAfterDelete},
		{"Delete/old tombstones go away", testTombstonesEnd},
		{"Record/odd names", testOddNames},
		{"Record/a call that was cancelled does nothing", testCancelled},
	}
}

func testInsert(e *env) {
	before := time.Now().Add(-time.Minute)
	r := e.record()
	r.State, r.Reason = webhook.StatePaused, "they asked for it"
	kept := e.insert(r)
	if kept.Revision <= 0 || kept.Created.Before(before) || !kept.Created.Equal(kept.Updated) || kept.Deleted {
		e.Errorf("kept as %+v", kept)
	}
	want := r
	want.Fingerprints = nil
	want.Created, want.Updated, want.Revision = kept.Created, kept.Updated, kept.Revision
	e.want("inserted", kept, want)
	e.want("read", e.get(r.ID), want)
	bare := endpoints.Record{ID: e.name("bare"), Tenant: e.tenant, State: webhook.StateActive}
	e.insert(bare)
	if got := e.get(bare.ID); !got.Since.IsZero() || len(got.Settings)+len(got.Sealed) != 0 || got.Key != "" || got.Reason != "" {
		e.Errorf("a bare record is read as %+v", got)
	}
	_, err := e.store.Get(e.Context(), e.name("unknown"))
	e.wantError("get of an unknown id", err, webhook.ErrUnknownEndpoint)
}

func testInsertTwice(e *env) {
	kept := e.some(1)[0]
	again := e.record()
	again.ID = kept.ID
	_, err := e.store.Insert(e.Context(), again)
	e.wantError("second insert", err, endpoints.ErrExists)
	e.want("the first", e.get(kept.ID), kept)
	// What was refused has taken no secret.
	again.ID = e.name("endpoint")
	e.insert(again)
}

// race runs fn in n goroutines at once, counts those that succeed, and wants the others to fail with want.
func (e *env) race(n int, want error, fn func(i int) error) int {
	e.Helper()
	var all sync.WaitGroup
	var won atomic.Int32
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			switch err := fn(i); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, want):
				e.Errorf("number %d: %v, want %v", i, err, want)
			}
		})
	}
	close(start)
	all.Wait()
	return int(won.Load())
}

func testInsertRace(e *env) {
	id := e.name("endpoint")
	won := e.race(8, endpoints.ErrExists, func(int) error {
		r := e.record()
		r.ID = id
		_, err := e.store.Insert(e.Context(), r)
		return err
	})
	if won != 1 {
		e.Errorf("%d inserts of one id succeeded", won)
	}
}

func testUpdate(e *env) {
	kept := e.some(1)[0]
	next := endpoints.Record{
		ID: kept.ID, Tenant: e.name("tenant"), State: webhook.StateDisabled, Reason: webhook.ReasonGone, Since: noon.Add(time.Hour),
		Settings: []byte("other settings"), Sealed: []byte{0, 1, 2, 255}, Key: "another key", Revision: kept.Revision,
		Created: noon, Updated: noon, // the store's own
	}
	got := e.update(next)
	if got.Revision <= kept.Revision || got.Updated.Before(kept.Updated) {
		e.Errorf("revision %d at %v after %d at %v", got.Revision, got.Updated, kept.Revision, kept.Updated)
	}
	next.Created, next.Updated, next.Revision = kept.Created, got.Updated, got.Revision
	e.want("updated", got, next)
	e.want("read", e.get(kept.ID), next)
}

func testUpdateConflict(e *env) {
	kept := e.some(1)[0]
	got := e.update(kept)
	for _, revision := range []int64{kept.Revision, 0, -1, got.Revision + 1} {
		stale := kept
		stale.Revision, stale.Settings = revision, []byte("lost")
		_, err := e.store.Update(e.Context(), stale)
		e.wantError("stale update", err, endpoints.ErrConflict)
	}
	e.want("what was there", e.get(kept.ID), got)
}

func testUpdateRace(e *env) {
	kept := e.some(1)[0]
	for range 5 {
		won := e.race(8, endpoints.ErrConflict, func(int) error {
			_, err := e.store.Update(e.Context(), kept)
			return err
		})
		if won != 1 {
			e.Fatalf("%d updates of one revision succeeded", won)
		}
		kept = e.get(kept.ID)
	}
}

func testUpdateUnknown(e *env) {
	r := e.record()
	r.Revision = 1
	_, err := e.store.Update(e.Context(), r)
	e.wantError("update", err, webhook.ErrUnknownEndpoint)
	e.wantError("delete", e.store.Delete(e.Context(), r.ID, 1), webhook.ErrUnknownEndpoint)
}

func testDelete(e *env) {
	kept := e.some(1)[0]
	e.delete(kept)
	_, err := e.store.Get(e.Context(), kept.ID)
	e.wantError("get", err, webhook.ErrUnknownEndpoint)
	_, err = e.store.Update(e.Context(), kept)
	e.wantError("update", err, webhook.ErrUnknownEndpoint)
	e.wantError("second delete", e.store.Delete(e.Context(), kept.ID, kept.Revision), webhook.ErrUnknownEndpoint)
	if list := e.list(endpoints.Filter{Tenant: e.tenant}, "", 10); len(list) != 0 {
		e.Errorf("list has %+v", list)
	}
	changes := e.changes(kept.Revision, 10)
	if len(changes) != 1 || changes[0].Revision <= kept.Revision {
		e.Fatalf("changes since %d are %+v", kept.Revision, changes)
	}
	e.want("tombstone", changes[0], endpoints.Record{ID: kept.ID, Tenant: e.tenant, Revision: changes[0].Revision, Deleted: true})
}

func testDeleteConflict(e *env) {
	kept := e.some(1)[0]
	got := e.update(kept)
	e.wantError("stale delete", e.store.Delete(e.Context(), kept.ID, kept.Revision), endpoints.ErrConflict)
	e.want("what was there", e.get(kept.ID), got)
}

func testInsertAfterDelete(e *env) {
	kept := e.some(1)[0]
	e.delete(kept)
	e.age(e.T, kept.ID, time.Hour)
	again := e.record()
	again.ID = kept.ID
	got := e.insert(again)
	if got.Revision <= kept.Revision+1 || got.Created.Before(kept.Created) || got.Deleted {
		e.Errorf("inserted again as %+v after %+v", got, kept)
	}
	changes := e.changes(kept.Revision, 10)
	e.want("changes", changes, []endpoints.Record{got})
}

func testTombstonesEnd(e *env) {
	gone, late, living := e.record(), e.record(), e.insert(e.record())
	e.delete(e.insert(gone))
	e.delete(e.insert(late))
	e.age(e.T, gone.ID, endpoints.TombstoneAge+time.Hour)
	e.age(e.T, living.ID, endpoints.TombstoneAge+time.Hour)
	e.delete(e.insert(e.record()))
	e.get(living.ID)
	var buried []string
	for _, r := range e.changes(0, 100_000) {
		if r.Tenant == e.tenant && r.Deleted && (r.ID == gone.ID || r.ID == late.ID) {
			buried = append(buried, r.ID)
		}
	}
	e.want("tombstones", buried, []string{late.ID})
}

func testOddNames(e *env) {
	for _, odd := range []string{"größe", "日本", "🙂", "a b", "'); DROP TABLE x; --", `"\%_`, "null", "\x00", "a\x00b", "\xff\xfe", "\n", "A", "a"} {
		r := e.record()
		r.ID, r.Tenant, r.Reason, r.Key = r.ID+odd, e.tenant+odd, odd, odd
		kept := e.insert(r)
		e.want("record "+odd, e.get(r.ID), kept)
		if kept.ID != r.ID || kept.Tenant != r.Tenant || kept.Reason != odd || kept.Key != odd {
			e.Errorf("%q is kept as %+v", odd, kept)
		}
		e.want("list of "+odd, e.list(endpoints.Filter{Tenant: r.Tenant}, "", 10), []endpoints.Record{kept})
		if seen := e.report(endpoints.Delta{Endpoint: r.ID, Failures: 1, FirstFailure: noon}); len(seen) != 1 || seen[0].Endpoint != r.ID {
			e.Errorf("report of %q: %+v", odd, seen)
		}
		e.delete(kept)
	}
}

func testCancelled(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	r := e.record()
	_, err := e.store.Insert(ctx, r)
	e.wantError("insert", err, context.Canceled)
	if errors.Is(err, endpoints.ErrUnavailable) {
		e.Errorf("the caller's own end counts as the store's: %v", err)
	}
	_, err = e.store.Get(e.Context(), r.ID)
	e.wantError("get", err, webhook.ErrUnknownEndpoint)
}
