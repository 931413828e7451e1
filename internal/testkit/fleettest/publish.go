package fleettest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/internal/fleet"
)

func publishTests() []testCase {
	return []testCase{
		{"Publish/comes back whole", testWhole},
		{"Publish/replaces the last one", testReplaces},
		{"Publish/publishers at once", testAtOnce},
		{"Publish/reports without id or time are refused", testRefused},
		{"Publish/a done context ends it", testDone},
		{"Reports/sorted by owner", testSorted},
		{"Reports/a worker that is not heard of is left out", testLive},
		{"Reports/times are the store's", testSkew},
		{"Remove/takes one away", testRemove},
	}
}

func testWhole(e *env) {
	r := e.report("a")
	now := r.Sent
	r.NotReady, r.InFlight, r.Abandoned = "queue \"q\": gone\x00", 3, 1
	r.Queues = []fleet.Queue{{Name: "q", Slots: 8, InUse: 3}}
	r.Kinds = []fleet.Kind{{Name: "email.send", MaxAttempts: 4, Keyed: true, Destination: "mail", Pool: "email.send"}}
	r.Pools = []fleet.Pool{{Name: "email.send", Size: 4, InUse: 4, Waiting: 2}}
	r.Destinations = []fleet.Destination{
		{Name: "a.example.com", State: "closed", Reason: "throttled", Next: now.Add(time.Minute)},
		{Name: "b.example.com", State: "open", Override: "forced_open", Reason: "forced_open", Since: now.Add(-time.Hour), Waiting: 12},
	}
	e.publish(r)
	got := e.one()
	if got.At.IsZero() || got.Now.Before(got.At) {
		e.Errorf("taken at %v, read at %v", got.At, got.Now)
	}
	e.same(r, got)
}

// same compares reports; their times differ by how long it took to reach the status store.
func (e *env) same(want, got fleet.Report) {
	e.Helper()
	if diff := cmp.Diff(fixed(want), fixed(got), cmpopts.EquateApproxTime(time.Microsecond)); diff != "" {
		e.Errorf("report (-want +got):\n%s", diff)
	}
}

// fixed returns r as it would be if it was sent at a fixed time, and without what status stores add.
func fixed(r fleet.Report) fleet.Report {
	r.Started = ago(r, r.Started)
	r.Destinations = slices.Clone(r.Destinations)
	for i, d := range r.Destinations {
		r.Destinations[i].Since, r.Destinations[i].Next = ago(r, d.Since), ago(r, d.Next)
	}
	r.Sent, r.At, r.Now = time.Time{}, time.Time{}, time.Time{}
	return r
}

// ago expresses t by a clock that stands at a fixed time when r is sent.
func ago(r fleet.Report, t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Unix(1e9, 0).Add(t.Sub(r.Sent))
}

func testReplaces(e *env) {
	r := e.report("a")
	r.Destinations = []fleet.Destination{{Name: "x", State: "open"}}
	e.publish(r)
	r.Destinations, r.InFlight = nil, 9
	e.publish(r)
	if got := e.one(); got.InFlight != 9 || got.Destinations != nil {
		e.Errorf("the second report reads %+v", got)
	}
}

func testAtOnce(e *env) {
	var wg sync.WaitGroup
	const publishers = 16
	for i := range publishers {
		wg.Go(func() {
			for n := range 5 {
				r := e.report(fmt.Sprintf("%02d", i))
				r.InFlight = n
				if err := e.store.Publish(e.Context(), r); err != nil {
					e.Errorf("publish: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := e.reports()
	if len(got) != publishers {
		e.Fatalf("%d reports of %d publishers", len(got), publishers)
	}
	for _, r := range got {
		if r.InFlight != 4 {
			e.Errorf("%s: report number %d is kept, want the last", r.ID, r.InFlight)
		}
	}
}

func testRefused(e *env) {
	r := e.report("a")
	r.Sent = time.Time{}
	if err := e.store.Publish(e.Context(), r); err == nil {
		e.Error("a report without a time was taken")
	}
	if err := e.store.Publish(e.Context(), fleet.Report{Sent: time.Now()}); err == nil {
		e.Error("a report without an id was taken")
	}
	e.wants()
}

func testDone(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	if err := e.store.Publish(ctx, e.report("a")); err == nil {
		e.Error("published under a context that was done")
	}
	if _, err := e.store.Reports(ctx); err == nil {
		e.Error("read under a context that was done")
	}
	e.wants()
}

func testSorted(e *env) {
	for _, name := range []string{"b", "c", "a"} {
		e.publish(e.report(name))
	}
	same := e.report("d")
	same.Owner = "owner-b"
	e.publish(same)
	e.wants("a", "b", "d", "c")
}

func testLive(e *env) {
	old, young := e.report("old"), e.report("young")
	e.publish(old)
	e.age(e.T, old.ID, fleet.Live-time.Second)
	e.wants("old")
	e.age(e.T, old.ID, 2*time.Second)
	e.publish(young)
	e.wants("young")
	e.publish(e.report("old"))
	e.wants("old", "young")
}

func testSkew(e *env) {
	r := e.report("a")
	r.Destinations = []fleet.Destination{{Name: "x", State: "open", Since: r.Sent.Add(-time.Minute), Next: r.Sent.Add(time.Minute)}}
	e.publish(r)
	right := e.one()
	const wrong = 3 * time.Hour // the worker's clock is ahead
	for _, t := range []*time.Time{&r.Sent, &r.Started, &r.Destinations[0].Since, &r.Destinations[0].Next} {
		*t = t.Add(wrong)
	}
	e.publish(r)
	got := e.one()
	e.same(right, got)
	if d := got.Destinations[0]; got.At.Sub(d.Since).Round(time.Microsecond) != time.Minute || d.Next.Sub(got.At).Round(time.Microsecond) != time.Minute {
		e.Errorf("since %v and next %v, a minute from %v", d.Since, d.Next, got.At)
	}
}

func testRemove(e *env) {
	e.publish(e.report("a"))
	e.publish(e.report("b"))
	for range 2 { // the second finds nothing
		if err := e.store.Remove(e.Context(), e.name+"a"); err != nil {
			e.Fatalf("remove: %v", err)
		}
		e.wants("b")
	}
}
