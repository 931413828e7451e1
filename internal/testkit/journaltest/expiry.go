package journaltest

import (
	"errors"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

func expiryTests() []testCase {
	return []testCase{
		{"Expire/drops what is older", testExpire},
		{"Expire/keeps attempts for longer than events", testExpireApart},
		{"Expire/frees ids", testExpireFreesIDs},
	}
}

// gone expires until an event is gone.
func (e *env) gone(id string, events, attempts time.Duration) {
	e.Helper()
	for range 50 {
		if err := e.store.Expire(e.Context(), events, attempts); err != nil && !errors.Is(err, journal.ErrUnavailable) {
			e.Fatalf("expire: %v", err)
		}
		_, err := e.store.Event(e.Context(), e.tenant, id)
		if errors.Is(err, webhook.ErrNoEvent) {
			return
		}
		if err != nil {
			e.Fatalf("event: %v", err)
		}
		e.pass(e.short / 10)
	}
	e.Fatal("an event that is past its retention never goes")
}

func testExpire(e *env) {
	old := e.some(700) // more than a step
	endpoint := e.name("endpoint")
	e.log(e.attempt(endpoint, old[0].ID, time.Now()))
	e.expire(long) // the part ends
	e.pass(e.short)
	e.pass(time.Millisecond)
	young := e.some(1)
	e.gone(old[0].ID, e.short, e.short)
	if got := e.pages(journal.EventFilter{Tenant: e.tenant, To: e.get(young[0].ID).At}, 1000, nil); len(got) != 0 {
		e.Errorf("%d old events are left", len(got))
	}
}

func testExpireApart(e *env) {
	old := e.some(1)
	endpoint := e.name("endpoint")
	a := e.attempt(endpoint, old[0].ID, time.Now())
	e.log(a)
	e.expire(long)
	e.pass(e.short)
	e.gone(old[0].ID, e.short, long)
	e.wantAttempts("of an event that is gone", journal.AttemptFilter{Endpoint: endpoint}, 10, a)
}

func testExpireFreesIDs(e *env) {
	old := e.some(1)[0]
	e.expire(long)
	e.pass(e.short)
	e.gone(old.ID, e.short, long)
	other := others(old)[1]
	e.put(other)
	e.wantConflicts(other)
}
