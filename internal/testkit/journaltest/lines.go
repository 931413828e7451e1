package journaltest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-go/caisson/webhook/ordering"
)

func lineTests() []testCase {
	return []testCase{
		{"Lines/one after the other", testLine},
		{"Lines/of many endpoints", testManyLines},
		{"Lines/may be repeated", testLineRepeats},
		{"Lines/leave from the middle", testLeaveMiddle},
		{"Lines/drop", testDropLine},
		{"Lines/ahead of one", testAhead},
		{"Lines/of two tenants", testLineOfTwo},
		{"Lines/lost heads", testStale},
		{"Lines/many publishers and workers", testLineRace},
	}
}

// ignoreSince compares places without their times.
var ignoreSince = cmpopts.IgnoreFields(ordering.Entry{}, "Since")

// appended appends and fails unless the heads are those.
func (e *env) appended(event string, endpoints []string, want ...ordering.Entry) []ordering.Entry {
	e.Helper()
	heads, err := e.store.Append(e.Context(), e.tenant, event, endpoints)
	if err != nil {
		e.Fatalf("append: %v", err)
	}
	slices.SortFunc(heads, func(a, b ordering.Entry) int {
		return slices.Index(endpoints, a.Endpoint) - slices.Index(endpoints, b.Endpoint)
	})
	e.wantPlaces("append "+event, heads, want)
	return heads
}

func (e *env) wantPlaces(what string, got, want []ordering.Entry) {
	e.Helper()
	if diff := cmp.Diff(want, got, ignoreSince, cmpopts.EquateEmpty()); diff != "" {
		e.Errorf("%s (-want +got):\n%s", what, diff)
	}
	for _, p := range got {
		if age := time.Since(p.Since); age < -time.Minute || age > 24*time.Hour {
			e.Errorf("%s: head since %s", what, p.Since)
		}
	}
}

// left takes an event out of a line and fails unless the new head is next; none if that is empty.
func (e *env) left(endpoint, event, next string) {
	e.Helper()
	got, ok, err := e.store.Remove(e.Context(), e.place(endpoint, event))
	if err != nil {
		e.Fatalf("leave: %v", err)
	}
	if ok != (next != "") {
		e.Fatalf("leave %s: a new head: %v, want %q", event, ok, next)
	}
	if ok {
		e.wantPlaces("leave "+event, []ordering.Entry{got}, []ordering.Entry{e.place(endpoint, next)})
	}
}

func (e *env) place(endpoint, event string) ordering.Entry {
	return ordering.Entry{Endpoint: endpoint, Tenant: e.tenant, Event: event}
}

func (e *env) waiting(endpoint string, want int) {
	e.Helper()
	if n, err := e.store.Len(e.Context(), endpoint); err != nil || n != want {
		e.Errorf("%d wait in the line of %s, %v, want %d", n, endpoint, err, want)
	}
}

func testLine(e *env) {
	shop := e.name("shop")
	one := []string{shop}
	e.appended("evt-1", one, e.place(shop, "evt-1"))
	e.appended("evt-2", one)
	e.appended("evt-3", one)
	e.waiting(shop, 3)
	e.left(shop, "evt-1", "evt-2")
	e.left(shop, "evt-2", "evt-3")
	e.appended("evt-0", one) // ids say nothing about the order
	e.left(shop, "evt-3", "evt-0")
	e.left(shop, "evt-0", "")
	e.waiting(shop, 0)
	e.left(shop, "evt-0", "")
	e.appended("evt-4", one, e.place(shop, "evt-4"))
	e.waiting(shop, 1)
}

// ahead fails unless so many are ahead of an event, behind that head; none if the head is empty.
func (e *env) ahead(p ordering.Entry, want int, head string) {
	e.Helper()
	n, got, ok, err := e.store.Ahead(e.Context(), p)
	if err != nil || n != want || ok != (head != "") {
		e.Errorf("%d are ahead of %+v: %v, %v, want %d", n, p, ok, err, want)
	}
	if ok {
		e.wantPlaces("the head", []ordering.Entry{got}, []ordering.Entry{e.place(p.Endpoint, head)})
	}
}

func testAhead(e *env) {
	shop, other := e.name("shop"), e.name("other")
	e.ahead(e.place(shop, "evt-1"), 0, "")
	e.appended("evt-1", []string{shop, other}, e.places([]string{shop, other}, "evt-1")...)
	e.appended("evt-2", []string{shop})
	e.appended("evt-3", []string{shop})
	e.ahead(e.place(shop, "evt-1"), 0, "evt-1")
	e.ahead(e.place(shop, "evt-3"), 2, "evt-1")
	e.ahead(e.place(other, "evt-1"), 0, "evt-1")
	e.ahead(e.place(other, "evt-3"), 0, "")
	foreign := e.place(shop, "evt-3")
	foreign.Tenant = e.name("nobody")
	e.ahead(foreign, 0, "")
	e.left(shop, "evt-2", "")
	e.ahead(e.place(shop, "evt-3"), 1, "evt-1")
	e.left(shop, "evt-1", "evt-3")
	e.ahead(e.place(shop, "evt-3"), 0, "evt-3")
	e.ahead(e.place(shop, "evt-1"), 0, "")
}

func testManyLines(e *env) {
	var shops []string
	for i := range 100 {
		shops = append(shops, e.name(fmt.Sprintf("shop-%02d", i)))
	}
	e.appended("evt-1", shops[:50], e.places(shops[:50], "evt-1")...)
	e.appended("evt-2", shops, e.places(shops[50:], "evt-2")...)
	e.left(shops[0], "evt-1", "evt-2")
	e.left(shops[0], "evt-2", "")
	e.appended("evt-3", shops, e.place(shops[0], "evt-3"))
	e.left(shops[99], "evt-2", "evt-3")
	e.waiting(shops[0], 1)
	e.waiting(shops[1], 3)
	e.waiting(shops[99], 1)
	e.appended("evt-4", nil)
}

func (e *env) places(endpoints []string, event string) (places []ordering.Entry) {
	for _, endpoint := range endpoints {
		places = append(places, e.place(endpoint, event))
	}
	return places
}

// What is repeated after a lost answer changes nothing, and names the event's own head again.
func testLineRepeats(e *env) {
	shop := e.name("shop")
	one := []string{shop}
	first := e.appended("evt-1", one, e.place(shop, "evt-1"))
	e.pass(2 * time.Millisecond)
	again := e.appended("evt-1", one, e.place(shop, "evt-1"))
	if !again[0].Since.Equal(first[0].Since) {
		e.Errorf("the head is one since %s and then since %s", first[0].Since, again[0].Since)
	}
	e.appended("evt-2", one)
	e.appended("evt-2", one)
	e.waiting(shop, 2)
	e.left(shop, "evt-1", "evt-2")
	e.left(shop, "evt-1", "")
	e.left(shop, "evt-none", "")
	e.waiting(shop, 1)
	e.appended("evt-2", one, e.place(shop, "evt-2"))
}

func testLeaveMiddle(e *env) {
	shop := e.name("shop")
	for i := range 4 {
		event := fmt.Sprint("evt-", i)
		if i == 0 {
			e.appended(event, []string{shop}, e.place(shop, event))
			continue
		}
		e.appended(event, []string{shop})
	}
	e.left(shop, "evt-1", "")
	e.left(shop, "evt-3", "")
	e.left(shop, "evt-0", "evt-2")
	e.left(shop, "evt-2", "")
}

// stale returns the stale heads of an endpoint.
func (e *env) stale(endpoint string, wait, longest time.Duration) (found []ordering.Entry) {
	e.Helper()
	heads, err := e.store.Stale(e.Context(), wait, longest, 1000)
	if err != nil {
		e.Fatalf("stale: %v", err)
	}
	for _, head := range heads {
		if head.Endpoint == endpoint {
			found = append(found, head)
		}
	}
	return found
}

func testStale(e *env) {
	shop := e.name("shop")
	first := e.appended("evt-1", []string{shop}, e.place(shop, "evt-1"))
	e.appended("evt-2", []string{shop})
	e.wantPlaces("a fresh head", e.stale(shop, long, long), nil)
	e.pass(e.short)
	got := e.stale(shop, e.short, long)
	e.wantPlaces("a lost head", got, []ordering.Entry{e.place(shop, "evt-1")})
	if len(got) == 1 && !got[0].Since.Equal(first[0].Since) {
		e.Errorf("the head is one since %s and then since %s", first[0].Since, got[0].Since)
	}
	e.wantPlaces("at once again", e.stale(shop, e.short, long), nil)
	e.pass(e.short)
	e.wantPlaces("too early for the second time", e.stale(shop, e.short, long), nil)
	e.wantPlaces("the longest wait", e.stale(shop, e.short, e.short), []ordering.Entry{e.place(shop, "evt-1")})
	e.left(shop, "evt-1", "evt-2")
	e.pass(e.short)
	e.wantPlaces("the next head waits as the first did", e.stale(shop, e.short, long), []ordering.Entry{e.place(shop, "evt-2")})
	e.left(shop, "evt-2", "")
	e.pass(e.short)
	e.wantPlaces("an empty line", e.stale(shop, 0, 0), nil)
	other := e.name("other")
	e.appended("evt-1", []string{other}, e.place(other, "evt-1"))
	e.appended("evt-1", []string{shop}, e.place(shop, "evt-1"))
	e.pass(2 * time.Millisecond)
	heads, err := e.store.Stale(e.Context(), time.Microsecond, time.Microsecond, 1)
	if err != nil || len(heads) != 1 {
		e.Errorf("%d heads with a limit of 1, %v", len(heads), err)
	}
}

// However many append and leave at once, each event is given out as a head once, or again to its own publisher, and no line stands still.
func testLineRace(e *env) {
	const publishers, events = 4, 15
	shops := []string{e.name("a"), e.name("b"), e.name("c")}
	heads := make(chan ordering.Entry, 10_000)
	var all, work sync.WaitGroup
	for p := range publishers {
		all.Go(func() {
			for i := range events {
				order := slices.Clone(shops)
				if p%2 == 1 {
					slices.Reverse(order)
				}
				found, err := e.store.Append(e.Context(), e.tenant, fmt.Sprintf("evt-%d-%d", p, i), order)
				if err != nil {
					e.Errorf("append: %v", err)
				}
				for _, head := range found {
					heads <- head
				}
			}
		})
	}
	var mu sync.Mutex
	left := map[string][]string{}
	for range 3 {
		work.Go(func() {
			for head := range heads {
				mu.Lock()
				left[head.Endpoint] = append(left[head.Endpoint], head.Event)
				done := len(left[shops[0]])+len(left[shops[1]])+len(left[shops[2]]) == 3*publishers*events
				mu.Unlock()
				next, ok, err := e.store.Remove(e.Context(), head)
				if err != nil {
					e.Errorf("leave: %v", err)
				}
				if ok {
					heads <- next
				}
				if done {
					close(heads)
				}
			}
		})
	}
	all.Wait()
	work.Wait()
	for _, shop := range shops {
		e.waiting(shop, 0)
		last := map[byte]int{}
		for _, event := range left[shop] {
			var p, i int
			if _, err := fmt.Sscanf(event, "evt-%d-%d", &p, &i); err != nil {
				e.Fatal(err)
			}
			if i != last[byte(p)] {
				e.Errorf("%s: publisher %d's event %d came in place of %d", shop, p, i, last[byte(p)])
			}
			last[byte(p)] = i + 1
		}
	}
}
