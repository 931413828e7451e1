package fleettest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/internal/fleet"
)

// Harness connects the suite to a status store.
type Harness struct {
	// Open returns a status store that is closed by t.Cleanup. It may hold reports of others. It is called inside a synctest bubble unless Age is
	// set. Required.
	Open func(t *testing.T) fleet.StatusStore
	// Age makes a publisher's report older by d than it is. Nil means that the status store reads time.Now: each test then runs in a synctest
	// bubble, where time passes at once.
	Age func(t *testing.T, id string, d time.Duration)
}

// Run runs the suite against the status store of h.
func Run(t *testing.T, h Harness) {
	for _, group := range [][]testCase{publishTests(), boundTests()} {
		for _, tc := range group {
			t.Run(tc.name, func(t *testing.T) { h.run(t, tc.test) })
		}
	}
}

type testCase struct {
	name string
	test func(*env)
}

func (h Harness) run(t *testing.T, test func(*env)) {
	body := func(t *testing.T) {
		e := &env{T: t, store: h.Open(t), age: h.Age, name: fmt.Sprintf("fleettest-%d-%d", time.Now().UnixNano(), names.Add(1))}
		if e.age == nil {
			e.age = func(_ *testing.T, _ string, d time.Duration) { time.Sleep(d) }
		}
		test(e)
	}
	if h.Age != nil {
		body(t)
		return
	}
	synctest.Test(t, body)
}

var names atomic.Int64

// env is one test's status store, and a name that the publishers of no other test begin with.
type env struct {
	*testing.T
	store fleet.StatusStore
	age   func(t *testing.T, id string, d time.Duration)
	name  string
}

// report returns a report of this test's publisher of that name.
func (e *env) report(publisher string) fleet.Report {
	return fleet.Report{
		ID: e.name + publisher, Owner: "owner-" + publisher, Host: "host", PID: 7, Version: "v1", Broker: "embedded", Sent: time.Now(),
		Started: time.Now().Add(-time.Hour),
	}
}

func (e *env) publish(r fleet.Report) {
	e.Helper()
	if err := e.store.Publish(e.Context(), r); err != nil {
		e.Fatalf("publish: %v", err)
	}
}

// reports returns those of this test.
func (e *env) reports() []fleet.Report {
	e.Helper()
	all, err := e.store.Reports(e.Context())
	if err != nil {
		e.Fatalf("reports: %v", err)
	}
	return slices.DeleteFunc(all, func(r fleet.Report) bool { return !strings.HasPrefix(r.ID, e.name) })
}

// one returns the only report of this test.
func (e *env) one() fleet.Report {
	e.Helper()
	all := e.reports()
	if len(all) != 1 {
		e.Fatalf("%d reports, want one", len(all))
	}
	return all[0]
}

// wants fails unless the reports of this test are those of the publishers named, in that order.
func (e *env) wants(publishers ...string) {
	e.Helper()
	var got []string
	for _, r := range e.reports() {
		got = append(got, strings.TrimPrefix(r.ID, e.name))
	}
	if !slices.Equal(got, publishers) {
		e.Fatalf("reports of %q, want %q", got, publishers)
	}
}
