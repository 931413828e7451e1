package row

import (
	"errors"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

func TestCursor(t *testing.T) {
	t.Parallel()
	for _, want := range []Cursor{{}, {Micro: 1, Seq: 2}, {Micro: 1 << 52, Seq: 1<<63 - 1}} {
		if got, err := Parse(want.String()); err != nil || got != want {
			t.Errorf("%v read as %v, %v", want, got, err)
		}
	}
	for _, text := range []string{"", ".", "a", "a.", ".a", "ä.1", "1.2.3", "99999999999999999.1"} {
		if c, err := Parse(text); !errors.Is(err, journal.ErrCursor) {
			t.Errorf("%q is taken for %v, %v", text, c, err)
		}
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, prefix string
		whole           bool
	}{{"", "", false}, {"*", "", false}, {"invoice.*", "invoice.", false}, {"invoice.paid", "invoice.paid", true}} {
		if prefix, whole := Types(journal.EventFilter{Type: c.pattern}); prefix != c.prefix || whole != c.whole {
			t.Errorf("%q: the types are %q, whole %t", c.pattern, prefix, whole)
		}
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	kept := webhook.Event{ID: "evt_1", Tenant: "a", Type: "invoice.paid", ContentType: "text/plain", Body: []byte("x")}
	again := kept
	again.At = time.Now()
	if !Same(kept, again) {
		t.Error("published at another time it is another event")
	}
	for name, change := range map[string]func(e *webhook.Event){
		"type":         func(e *webhook.Event) { e.Type = "invoice.sent" },
		"content type": func(e *webhook.Event) { e.ContentType = "text/html" },
		"body":         func(e *webhook.Event) { e.Body = []byte("y") },
	} {
		other := kept
		change(&other)
		if Same(kept, other) {
			t.Errorf("another %s is the same event", name)
		}
	}
	if err := Conflict(kept); !errors.Is(err, webhook.ErrEventConflict) {
		t.Errorf("a conflict is %v", err)
	}
}
