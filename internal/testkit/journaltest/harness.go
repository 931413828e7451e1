package journaltest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/storesuite"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/ordering"
)

// Store is what the suite tests.
type Store interface {
	journal.Store
	ordering.Queues
}

// Harness connects the suite to a store.
type Harness struct {
	// Open returns a store that is closed by t.Cleanup. It may hold records of other tests: the suite uses fresh names. One that drops whole
	// parts only must begin a new part with each Expire. It is called inside a synctest bubble unless Pass is set. Required.
	Open func(t *testing.T) Store
	// Pass lets at least d go by on the store's clock. Nil means that the store reads time.Now: each test then runs in a
	// synctest bubble, where days pass at once. For a server's clock use time.Sleep.
	Pass func(d time.Duration)
	// Short is a retention that a test waits for. Zero means 10 s, or 2 s if Pass is set.
	Short time.Duration
}

func (h Harness) withDefaults() Harness {
	if h.Short == 0 {
		h.Short = 10 * time.Second
		if h.Pass != nil {
			h.Short = 2 * time.Second
		}
	}
	return h
}

// Run runs the suite against the store of h.
func Run(t *testing.T, h Harness) {
	h = h.withDefaults()
	cases := slices.Concat(eventTests(), attemptTests(), expiryTests(), lineTests())
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.name
	}
	storesuite.Run(t, names, h.Pass != nil, func(*testing.T) func(*testing.T, int) {
		return func(t *testing.T, i int) { h.run(t, cases[i].test) }
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
		e.tenant = e.name("tenant")
		test(e)
	}
	if h.Pass != nil {
		body(t)
		return
	}
	synctest.Test(t, body)
}

// long is a retention that never ends during a test.
const long = 1000 * time.Hour

// env is one test's store, and a tenant that no other test uses.
type env struct {
	*testing.T
	store  Store
	short  time.Duration
	pass   func(time.Duration)
	tenant string
}

// name returns a name that no other test uses.
func (e *env) name(prefix string) string {
	return storesuite.Name(prefix)
}

// event returns a fresh event of the test's tenant.
func (e *env) event() webhook.Event {
	id := e.name("evt")
	return webhook.Event{ID: id, Tenant: e.tenant, Type: "invoice.paid", ContentType: "application/json", Body: []byte(`{"id":"` + id + `"}`)}
}

// put keeps an event.
func (e *env) put(event webhook.Event) {
	e.Helper()
	if err := e.store.PutEvent(e.Context(), event); err != nil {
		e.Fatalf("put event: %v", err)
	}
}

// some puts n fresh events, each newer than the one before.
func (e *env) some(n int) []webhook.Event {
	e.Helper()
	events := make([]webhook.Event, n)
	for i := range events {
		events[i] = e.event()
		e.put(events[i])
		e.pass(time.Millisecond)
	}
	return events
}

// get returns a kept event.
func (e *env) get(id string) webhook.Event {
	e.Helper()
	event, err := e.store.Event(e.Context(), e.tenant, id)
	if err != nil {
		e.Fatalf("event %s: %v", id, err)
	}
	return event
}

// expire expires with one retention for all.
func (e *env) expire(retention time.Duration) {
	e.Helper()
	if err := e.store.Expire(e.Context(), retention, retention); err != nil {
		e.Fatalf("expire: %v", err)
	}
}
