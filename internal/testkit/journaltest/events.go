package journaltest

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

func eventTests() []testCase {
	return []testCase{
		{"Event/comes back byte for byte", testEventBytes},
		{"Event/once per tenant and id", testEventConflict},
		{"Event/conflicts with one in an older part", testOldConflict},
		{"Event/many publishers of one id", testEventRace},
		{"Events/oldest first in pages", testEventPages},
		{"Events/from and to", testEventTimes},
		{"Events/refuses bad arguments", testEventArguments},
		{"Events/of a type, without bodies", testEventTypes},
	}
}

func testEventBytes(e *env) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, body := range [][]byte{every, nil, {}, []byte("{ \"a\": 1.0,\r\n\"a\":2 }"), bytes.Repeat([]byte("x"), 1<<20)} {
		want := e.event()
		want.Body, want.ContentType = body, `text/plain; charset="ütf"`
		e.put(want)
		got := e.get(want.ID)
		if age := time.Since(got.At); age < -time.Minute || age > time.Minute {
			e.Errorf("published at %s", got.At)
		}
		if !bytes.Equal(got.Body, want.Body) {
			e.Errorf("body of %d bytes came back as %d others", len(want.Body), len(got.Body))
		}
		got.At, got.Body, want.Body = time.Time{}, nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			e.Errorf("(-want +got):\n%s", diff)
		}
	}
	for _, id := range []string{"evt-none", "", "\xff\x00"} {
		if _, err := e.store.Event(e.Context(), e.tenant, id); !errors.Is(err, webhook.ErrNoEvent) {
			e.Errorf("an event that was never published: %v", err)
		}
	}
}

// others are events of the same id that are not the same.
func others(event webhook.Event) []webhook.Event {
	typ, body, content := event, event, event
	typ.Type = "invoice.void"
	body.Body = append(slices.Clone(event.Body), ' ')
	content.ContentType = "text/plain"
	return []webhook.Event{typ, body, content}
}

func (e *env) wantConflicts(event webhook.Event) {
	e.Helper()
	e.put(event) // the same again
	for _, other := range others(event) {
		if err := e.store.PutEvent(e.Context(), other); !errors.Is(err, webhook.ErrEventConflict) {
			e.Errorf("another event of that id: %v", err)
		}
	}
	if got := e.get(event.ID); !bytes.Equal(got.Body, event.Body) || got.Type != event.Type || got.ContentType != event.ContentType {
		e.Errorf("the first event was changed: %+v", got)
	}
}

func testEventConflict(e *env) {
	event := e.event()
	e.put(event)
	e.wantConflicts(event)
	elsewhere := event
	elsewhere.Tenant, elsewhere.Body = e.name("tenant"), []byte("another tenant's")
	e.put(elsewhere)
	e.wantConflicts(event)
}

func testOldConflict(e *env) {
	event := e.event()
	e.put(event)
	for range 3 {
		e.expire(long)
		e.wantConflicts(event)
	}
	page, _, err := e.store.Events(e.Context(), journal.EventFilter{Tenant: e.tenant}, "", 10)
	if err != nil || len(page) != 1 {
		e.Errorf("%d events of one id, %v", len(page), err)
	}
}

func testEventRace(e *env) {
	const publishers = 8
	event := e.event()
	variants := append(others(event), event)
	errs := make([]error, publishers)
	var all sync.WaitGroup
	for i := range publishers {
		all.Go(func() {
			if i%3 == 0 { // parts come and go meanwhile
				if err := e.store.Expire(e.Context(), long, long); err != nil && !errors.Is(err, journal.ErrUnavailable) {
					e.Errorf("expire: %v", err)
				}
			}
			errs[i] = e.store.PutEvent(e.Context(), variants[i%len(variants)])
		})
	}
	all.Wait()
	kept := e.get(event.ID)
	for i, err := range errs {
		mine := variants[i%len(variants)]
		won := kept.Type == mine.Type && kept.ContentType == mine.ContentType && bytes.Equal(kept.Body, mine.Body)
		if won && err != nil || !won && !errors.Is(err, webhook.ErrEventConflict) {
			e.Errorf("publisher %d, whose event is the kept one: %v, got %v", i, won, err)
		}
	}
	page, _, err := e.store.Events(e.Context(), journal.EventFilter{Tenant: e.tenant}, "", 10)
	if err != nil || len(page) != 1 {
		e.Errorf("%d events of one id, %v", len(page), err)
	}
}

// pages returns the ids of all events in pages of limit. between runs after each page.
func (e *env) pages(f journal.EventFilter, limit int, between func()) (ids []string) {
	e.Helper()
	for after := ""; ; {
		page, next, err := e.store.Events(e.Context(), f, after, limit)
		if err != nil {
			e.Fatalf("events: %v", err)
		}
		if len(page) > limit {
			e.Fatalf("a page of %d with a limit of %d", len(page), limit)
		}
		for _, event := range page {
			ids = append(ids, event.ID)
			if !bytes.Contains(event.Body, []byte(event.ID)) || event.Tenant != e.tenant {
				e.Errorf("event %s of %s has the body %s", event.ID, event.Tenant, event.Body)
			}
		}
		if next == "" {
			return ids
		}
		if between != nil {
			between()
		}
		after = next
	}
}

func idsOf(events []webhook.Event) []string {
	ids := make([]string, len(events))
	for i, event := range events {
		ids[i] = event.ID
	}
	return ids
}

func testEventPages(e *env) {
	events := e.some(5)
	e.expire(long)
	events = append(events, e.some(5)...)
	for _, limit := range []int{1, 3, 5, 10, 1000} {
		if diff := cmp.Diff(idsOf(events), e.pages(journal.EventFilter{Tenant: e.tenant}, limit, nil)); diff != "" {
			e.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
	n := 0
	got := e.pages(journal.EventFilter{Tenant: e.tenant}, 4, func() {
		if n++; n < 3 {
			events = append(events, e.some(1)...)
		}
	})
	if diff := cmp.Diff(idsOf(events), got); diff != "" {
		e.Errorf("while events come (-want +got):\n%s", diff)
	}
	if got := e.pages(journal.EventFilter{Tenant: e.name("nobody")}, 4, nil); len(got) != 0 {
		e.Errorf("a tenant without events has %v", got)
	}
}

func testEventTimes(e *env) {
	events := e.some(5)
	at := e.get(events[2].ID).At
	for name, c := range map[string]struct {
		from, to time.Time
		want     []webhook.Event
	}{
		"from":        {at, time.Time{}, events[2:]},
		"to":          {time.Time{}, at, events[:2]},
		"just after":  {at.Add(time.Nanosecond), at.Add(time.Hour), events[3:]},
		"up to after": {time.Time{}, at.Add(time.Nanosecond), events[:3]},
		"nothing":     {at, at, nil},
	} {
		want := idsOf(c.want)
		if got := e.pages(journal.EventFilter{Tenant: e.tenant, From: c.from, To: c.to}, 2, nil); !slices.Equal(got, want) {
			e.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func testEventTypes(e *env) {
	for id, typ := range map[string]string{"paid": "invoice.paid", "sent": "invoice.sent", "item": "invoice.item.added", "bare": "invoice", "near": "invoices.paid", "other": "user.created"} {
		e.put(webhook.Event{Tenant: e.tenant, ID: id, Type: typ, ContentType: "application/json", Body: []byte(id)})
	}
	for typ, want := range map[string][]string{
		"": {"bare", "item", "near", "other", "paid", "sent"}, "*": {"bare", "item", "near", "other", "paid", "sent"},
		"invoice.*": {"item", "paid", "sent"}, "invoice.paid": {"paid"}, "invoice": {"bare"}, "nothing": {}, "nothing.*": {},
	} {
		got := e.pages(journal.EventFilter{Tenant: e.tenant, Type: typ}, 2, nil)
		if slices.Sort(got); !slices.Equal(got, want) {
			e.Errorf("of type %q: %v", typ, got)
		}
	}
	page, next, err := e.store.Events(e.Context(), journal.EventFilter{Tenant: e.tenant, Type: "invoice.*", WithoutBodies: true}, "", 2)
	if err != nil || len(page) != 2 || next == "" {
		e.Fatalf("%d events, next %q, %v", len(page), next, err)
	}
	for _, event := range page {
		if len(event.Body) > 0 || event.ID == "" || event.At.IsZero() || event.ContentType != "application/json" {
			e.Errorf("without its body: %+v", event)
		}
	}
}

func testEventArguments(e *env) {
	if _, _, err := e.store.Events(e.Context(), journal.EventFilter{Tenant: e.tenant}, "not a cursor", 1); !errors.Is(err, journal.ErrCursor) {
		e.Errorf("a bad cursor: %v", err)
	}
	if _, _, err := e.store.Attempts(e.Context(), journal.AttemptFilter{}, "x", 1); !errors.Is(err, journal.ErrCursor) {
		e.Errorf("a bad cursor: %v", err)
	}
	for _, limit := range []int{0, -1} {
		if _, _, err := e.store.Events(e.Context(), journal.EventFilter{Tenant: e.tenant}, "", limit); err == nil {
			e.Errorf("a limit of %d is taken", limit)
		}
		if _, _, err := e.store.Attempts(e.Context(), journal.AttemptFilter{}, "", limit); err == nil {
			e.Errorf("a limit of %d is taken", limit)
		}
	}
}
