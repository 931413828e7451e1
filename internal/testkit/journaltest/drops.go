package journaltest

import (
	"github.com/caisson-go/caisson/webhook/ordering"
)

func testDropLine(e *env) {
	shop, other := e.name("shop"), e.name("other")
	both := []string{shop, other}
	e.appended("evt-1", both, e.places(both, "evt-1")...)
	e.appended("evt-2", both)
	for _, want := range []int{2, 0} {
		if n, err := e.store.Drop(e.Context(), e.tenant, shop); err != nil || n != want {
			e.Errorf("dropped %d, %v, want %d", n, err, want)
		}
	}
	e.waiting(shop, 0)
	e.waiting(other, 2)
	e.left(shop, "evt-1", "")
	e.appended("evt-2", both, e.place(shop, "evt-2"))
	e.left(other, "evt-1", "evt-2")
}

// An endpoint's id went from one tenant to another: what waits of either is told apart, also under one event id.
func testLineOfTwo(e *env) {
	shop, mine, other := e.name("shop"), e.tenant, e.name("other")
	one := []string{shop}
	e.appended("evt-1", one, e.place(shop, "evt-1"))
	e.appended("evt-2", one)
	e.tenant = other
	e.appended("evt-1", one)
	e.appended("evt-3", one)
	e.waiting(shop, 4)
	e.left(shop, "evt-2", "") // it has none
	if n, err := e.store.Drop(e.Context(), mine, shop); err != nil || n != 2 {
		e.Errorf("dropped %d, %v, want 2", n, err)
	}
	e.waiting(shop, 2)
	e.pass(e.short)
	e.wantPlaces("the head that took the place", e.stale(shop, e.short, long), []ordering.Entry{e.place(shop, "evt-1")})
	e.tenant = mine
	e.left(shop, "evt-1", "")
	e.appended("evt-4", one)
	if n, err := e.store.Drop(e.Context(), mine, shop); err != nil || n != 1 {
		e.Errorf("dropped %d, %v, want 1 behind the head", n, err)
	}
	e.tenant = other
	e.left(shop, "evt-1", "evt-3")
	e.left(shop, "evt-3", "")
}
