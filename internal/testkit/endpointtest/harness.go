package endpointtest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/internal/testkit/storesuite"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Harness connects the suite to a store.
type Harness struct {
	// Open returns a store that is closed by t.Cleanup. It may hold records of other tests: the suite uses fresh names. Required.
	Open func(t *testing.T) endpoints.Store
	// Age makes the record of an id, deleted or not, look as if it had been changed d earlier. Required.
	Age func(t *testing.T, id string, d time.Duration)
	// Fresh returns the harness of a group of cases, with tables that no other group shares. Groups then run in parallel. Nil means that
	// all use this one, one after the other.
	Fresh func(t *testing.T) Harness
}

// Run runs the suite against the store of h.
func Run(t *testing.T, h Harness) {
	cases := slices.Concat(recordTests(), secretTests(), listTests(), changeTests(), healthTests())
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.name
	}
	storesuite.Run(t, names, h.Fresh != nil, func(t *testing.T) func(*testing.T, int) {
		own := h
		if h.Fresh != nil {
			own = h.Fresh(t)
		}
		return func(t *testing.T, i int) { own.run(t, cases[i].test) }
	})
}

func (h Harness) run(t *testing.T, test func(*env)) {
	e := &env{T: t, store: h.Open(t), age: h.Age}
	e.tenant = e.name("tenant")
	test(e)
}

type testCase struct {
	name string
	test func(*env)
}

// env is one test's store, and a tenant that no other test uses.
type env struct {
	*testing.T
	store  endpoints.Store
	age    func(*testing.T, string, time.Duration)
	tenant string
}

// name returns a name that no other test uses, later ones after earlier ones.
func (e *env) name(prefix string) string {
	return storesuite.Name(prefix)
}

// record returns a fresh record.
func (e *env) record() endpoints.Record {
	id := e.name("endpoint")
	return endpoints.Record{
		ID: id, Tenant: e.tenant, State: webhook.StateActive, Since: noon, Settings: []byte(`{"of":"` + id + `"}`), Sealed: []byte("sealed of " + id), Key: "key",
		Fingerprints: [][]byte{[]byte("secret of " + id)},
	}
}

// noon is a time that every store can hold exactly.
var noon = time.Date(2026, 8, 3, 12, 0, 0, 0, time.UTC)

func (e *env) insert(r endpoints.Record) endpoints.Record {
	e.Helper()
	kept, err := e.store.Insert(e.Context(), r)
	if err != nil {
		e.Fatalf("insert %q: %v", r.ID, err)
	}
	return kept
}

// some inserts n fresh records and returns them as kept.
func (e *env) some(n int) []endpoints.Record {
	e.Helper()
	kept := make([]endpoints.Record, n)
	for i := range kept {
		kept[i] = e.insert(e.record())
	}
	return kept
}

func (e *env) update(r endpoints.Record) endpoints.Record {
	e.Helper()
	kept, err := e.store.Update(e.Context(), r)
	if err != nil {
		e.Fatalf("update %q: %v", r.ID, err)
	}
	return kept
}

func (e *env) delete(r endpoints.Record) {
	e.Helper()
	if err := e.store.Delete(e.Context(), r.ID, r.Revision); err != nil {
		e.Fatalf("delete %q: %v", r.ID, err)
	}
}

func (e *env) get(id string) endpoints.Record {
	e.Helper()
	r, err := e.store.Get(e.Context(), id)
	if err != nil {
		e.Fatalf("get %q: %v", id, err)
	}
	return r
}

// want compares records; an empty text may come back as none.
func (e *env) want(what string, got, want any) {
	e.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		e.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (e *env) wantError(what string, err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Errorf("%s: %v, want %v", what, err, want)
	}
}

// newest is the last revision of the store.
func (e *env) newest() int64 {
	e.Helper()
	since := int64(0)
	for {
		changes := e.changes(since, 1000)
		if len(changes) == 0 {
			return since
		}
		since = changes[len(changes)-1].Revision
	}
}

func (e *env) changes(since int64, limit int) []endpoints.Record {
	e.Helper()
	changes, err := e.store.Changes(e.Context(), since, limit)
	if err != nil {
		e.Fatalf("changes since %d: %v", since, err)
	}
	return changes
}
