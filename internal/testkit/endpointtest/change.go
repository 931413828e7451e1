package endpointtest

import (
	"errors"
	"sync"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

func changeTests() []testCase {
	return []testCase{
		{"Changes/come in the order of revisions", testChanges},
		{"Changes/are never missed while many write", testNeverMissed},
	}
}

func testChanges(e *env) {
	from := e.newest()
	kept := e.some(5)
	kept[1] = e.update(kept[1])
	e.delete(kept[3])
	want := []endpoints.Record{kept[0], kept[2], kept[4], kept[1]}
	for _, limit := range []int{1, 2, 5, 100} {
		var got []endpoints.Record
		for since := from; ; {
			page := e.changes(since, limit)
			if len(page) > limit {
				e.Fatalf("page of %d with a limit of %d", len(page), limit)
			}
			got = append(got, page...)
			if len(page) == 0 {
				break
			}
			since = page[len(page)-1].Revision
		}
		if len(got) != 5 || !got[4].Deleted || got[4].ID != kept[3].ID {
			e.Fatalf("changes in pages of %d: %+v", limit, got)
		}
		e.want("changes", got[:4], want)
	}
	all := 0
	for since := int64(0); ; {
		page := e.changes(since, 3)
		for _, r := range page {
			if r.Tenant == e.tenant {
				all++
			}
		}
		if len(page) == 0 {
			break
		}
		since = page[len(page)-1].Revision
	}
	if all != 5 {
		e.Errorf("from the beginning there are %d records, want 5", all)
	}
}

// testNeverMissed polls as a mirror does while many write, and wants to end with what is there.
func testNeverMissed(e *env) {
	since := e.newest()
	seen := make(map[string]endpoints.Record)
	poll := func() {
		for {
			page := e.changes(since, 7)
			for _, r := range page {
				if r.Revision <= since {
					e.Errorf("revision %d after %d", r.Revision, since)
				}
				since = r.Revision
				seen[r.ID] = r
			}
			if len(page) == 0 {
				return
			}
		}
	}
	var writers sync.WaitGroup
	for range 6 {
		writers.Go(func() { e.churn(15) })
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
			poll()
		}
	}
	poll()
	living := make(map[string]endpoints.Record)
	for id, r := range seen {
		if !r.Deleted {
			living[id] = r
		}
	}
	want := make(map[string]endpoints.Record)
	for _, r := range e.list(endpoints.Filter{Tenant: e.tenant}, "", 1000) {
		want[r.ID] = r
	}
	if len(want) == 0 || len(seen) == len(living) {
		e.Errorf("%d records live, and %d of %d were not deleted: the test proves nothing", len(want), len(living), len(seen))
	}
	e.want("what the polls have seen", living, want)
}

// churn inserts n records, updates each, and deletes every third.
func (e *env) churn(n int) {
	for i := range n {
		r, err := e.store.Insert(e.Context(), e.record())
		if err == nil {
			r.State = webhook.StatePaused
			r, err = e.store.Update(e.Context(), r)
		}
		if err == nil && i%3 == 0 {
			err = e.store.Delete(e.Context(), r.ID, r.Revision)
		}
		if err != nil && !errors.Is(err, e.Context().Err()) {
			e.Errorf("churn: %v", err)
			return
		}
	}
}
