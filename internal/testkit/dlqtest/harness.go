package dlqtest

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/testkit/storesuite"
	"github.com/caisson-go/caisson/queue"
)

// Harness connects the suite to a store.
type Harness struct {
	// Open returns a store that is closed by t.Cleanup. It may hold entries of other tests: the suite uses fresh names. It is
	// called inside a synctest bubble unless Pass is set. Required.
	Open func(t *testing.T) dlq.Store
	// Pass lets at least d go by on the store's clock. Nil means that the store reads time.Now: each test then runs in a
	// synctest bubble, where days pass at once. For a server's clock use time.Sleep.
	Pass func(d time.Duration)
	// Short is a reservation or retention that a test waits for. Zero means 10 s, or 200 ms if Pass is set.
	Short time.Duration
	// Fresh returns the harness of a group of cases, with tables and a clock that no other group shares. Groups then run in parallel. Nil means that
	// all use this one, one after the other.
	Fresh func(t *testing.T) Harness
}

func (h Harness) withDefaults() Harness {
	if h.Short == 0 {
		h.Short = 10 * time.Second
		if h.Pass != nil {
			h.Short = 200 * time.Millisecond
		}
	}
	return h
}

// Run runs the suite against the store of h.
func Run(t *testing.T, h Harness) {
	h = h.withDefaults()
	cases := slices.Concat(putTests(), listTests(), countTests(), reserveTests(), resolveTests(), removalTests(), auditTests())
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.name
	}
	storesuite.Run(t, names, h.Fresh != nil, func(t *testing.T) func(*testing.T, int) {
		own := h
		if h.Fresh != nil {
			own = h.Fresh(t).withDefaults()
		}
		return func(t *testing.T, i int) { own.run(t, cases[i].test) }
	})
}

type testCase struct {
	name string
	test func(*env)
}

func (h Harness) run(t *testing.T, test func(*env)) {
	body := func(t *testing.T) {
		e := &env{T: t, store: h.Open(t), short: h.Short, pass: h.Pass}
		if e.pass == nil {
			e.pass = time.Sleep
		}
		e.queue = e.name("queue")
		test(e)
	}
	if h.Pass != nil {
		body(t)
		return
	}
	synctest.Test(t, body)
}

// long is a reservation that never ends during a test.
const long = time.Hour

// env is one test's store, and a queue that no other test uses: filters by it see this test's entries only.
type env struct {
	*testing.T
	store dlq.Store
	short time.Duration
	pass  func(time.Duration)
	queue string
}

// name returns a name that no other test uses.
func (e *env) name(prefix string) string {
	return storesuite.Name(prefix)
}

// tick makes the next entry newer than the last.
func (e *env) tick() { e.pass(time.Millisecond) }

// entry returns a fresh dead letter.
func (e *env) entry() dlq.Entry {
	job := e.name("job")
	return dlq.Entry{
		Job: job, State: dlq.StateDead, Queue: e.queue, Kind: "storetest", Destination: "dest", Cause: dlq.CauseExhausted, Error: "boom",
		Message: queue.Message{Body: []byte("payload of " + job), Headers: map[string]string{"h": job}},
	}
}

// held returns a fresh held entry of a destination that is this test's own.
func (e *env) held() dlq.Entry {
	entry := e.entry()
	entry.State, entry.Cause, entry.Destination = dlq.StateHeld, dlq.CauseDestinationOpen, e.queue
	return entry
}

// put stores entries, each newer than the one before, and returns their ids.
func (e *env) put(entries ...dlq.Entry) []string {
	e.Helper()
	ids := make([]string, len(entries))
	for i, entry := range entries {
		e.tick()
		if errs := e.store.Put(e.Context(), []dlq.Entry{entry}); len(errs) != 1 || errs[0] != nil {
			e.Fatalf("put: %v", errs)
		}
		ids[i] = dlq.EntryID(entry.Job, entry.Run)
	}
	return ids
}

// some puts n fresh dead letters.
func (e *env) some(n int) []string {
	e.Helper()
	entries := make([]dlq.Entry, n)
	for i := range entries {
		entries[i] = e.entry()
	}
	return e.put(entries...)
}

func (e *env) get(id string) dlq.Entry {
	e.Helper()
	entry, err := e.store.Get(e.Context(), id)
	if err != nil {
		e.Fatalf("get: %v", err)
	}
	return entry
}

func (e *env) wantState(id string, want dlq.State) {
	e.Helper()
	if got := e.get(id).State; got != want {
		e.Fatalf("entry %s is %s, want %s", id, got, want)
	}
}

// all selects this test's entries in the states given, dead ones if none.
func (e *env) all(states ...dlq.State) dlq.Filter { return dlq.Filter{Queue: e.queue, States: states} }

func (e *env) count(f dlq.Filter) int {
	e.Helper()
	n, err := e.store.Count(e.Context(), f)
	if err != nil {
		e.Fatalf("count: %v", err)
	}
	return n
}

// reserve reserves for owner and returns the ids.
func (e *env) reserve(owner string, f dlq.Filter, limit int, d time.Duration) []string {
	e.Helper()
	entries, err := e.store.Reserve(e.Context(), f, dlq.Reservation{Owner: owner, For: d, Limit: limit})
	if err != nil {
		e.Fatalf("reserve: %v", err)
	}
	return ids(entries)
}

func ids(entries []dlq.Entry) []string {
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry.ID
	}
	return ids
}

// resolve ends one reservation and fails unless the answer is want, by errors.Is.
func (e *env) resolve(owner, id string, to dlq.State, want error) {
	e.Helper()
	errs := e.store.Resolve(e.Context(), owner, []dlq.Resolution{{ID: id, To: to}})
	if len(errs) != 1 || !errors.Is(errs[0], want) {
		e.Fatalf("resolve %s as %q answers %v, want %v", id, to, errs, want)
	}
}

func (e *env) wantIDs(what string, got, want []string) {
	e.Helper()
	if !slices.Equal(got, want) {
		e.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func reversed(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}
