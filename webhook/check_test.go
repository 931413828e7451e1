package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook/signature"
)

func TestCheckFieldsOfTheOwner(t *testing.T) {
	t.Parallel()
	secret, old := signature.NewSecret(), signature.NewSecret()
	until := noon.Add(time.Hour)
	for _, c := range []struct {
		name   string
		change func(*Endpoint)
		want   string // in the error; empty means accepted
	}{
		{"tenant", func(e *Endpoint) { e.Tenant = "Acme:42/eu" }, ""},
		{"tenant with a space", func(e *Endpoint) { e.Tenant = "a b" }, `tenant "a b"`},
		{"tenant beyond ASCII", func(e *Endpoint) { e.Tenant = "größe" }, "printable ASCII"},
		{"tenant with a line break", func(e *Endpoint) { e.Tenant = "a\n" }, `tenant "a\n"`},
		{"long tenant", func(e *Endpoint) { e.Tenant = strings.Repeat("a", 129) }, "tenant of 129 bytes"},
		{"events", func(e *Endpoint) { e.Events = []string{"invoice.*", "user.created"} }, ""},
		{"a bad pattern", func(e *Endpoint) { e.Events = []string{"invoice.*", "*.paid"} }, `event pattern "*.paid"`},
		{"many patterns", func(e *Endpoint) { e.Events = make([]string, 101) }, "events: 101 patterns"},
		{"retiring", func(e *Endpoint) { e.Retiring = []RetiringSecret{{old, until}} }, ""},
		{"retiring without an end", func(e *Endpoint) { e.Retiring = []RetiringSecret{{Secret: old}} }, "retiring[0]: until when"},
		{"retiring without a secret", func(e *Endpoint) { e.Retiring = []RetiringSecret{{Until: until}} }, "retiring[0] is empty"},
		{"retiring and current", func(e *Endpoint) { e.Retiring = []RetiringSecret{{old, until}, {secret, until}} }, "retiring[1] is the same as secrets[0]"},
		{"many secrets", func(e *Endpoint) {
			for range 10 {
				e.Retiring = append(e.Retiring, RetiringSecret{signature.NewSecret(), until})
			}
		}, "secrets: 11 with those that retire"},
		{"paused", func(e *Endpoint) { e.State, e.Reason = StatePaused, "größer als gedacht" }, ""},
		{"disabled for no reason", func(e *Endpoint) { e.State = StateDisabled }, ""},
		{"unknown state", func(e *Endpoint) { e.State = "off" }, `state "off"`},
		{"active for a reason", func(e *Endpoint) { e.Reason = ReasonGone }, `reason "gone"`},
		{"long reason", func(e *Endpoint) { e.State, e.Reason = StatePaused, strings.Repeat("a", 257) }, "reason of 257 bytes"},
		{"reason of two lines", func(e *Endpoint) { e.State, e.Reason = StatePaused, "a\nb" }, "one line"},
		{"reason that is no text", func(e *Endpoint) { e.State, e.Reason = StatePaused, "\xff" }, "UTF-8"},
		{"metadata", func(e *Endpoint) { e.Metadata = map[string]string{"plan": "größer", "empty": ""} }, ""},
		{"many entries", func(e *Endpoint) { e.Metadata = manyHeaders(51) }, "metadata: 51 entries"},
		{"much metadata", func(e *Endpoint) { e.Metadata = map[string]string{"a": strings.Repeat("a", 8<<10)} }, "metadata: 8193 bytes"},
		{"entry without a name", func(e *Endpoint) { e.Metadata = map[string]string{"": "a"} }, "no name"},
		{"entry that is no text", func(e *Endpoint) { e.Metadata = map[string]string{"a": "\xff"} }, `metadata "a"`},
	} {
		e := Endpoint{ID: "e1", URL: "https://example.com/hook", Secrets: []signature.Secret{secret}}
		c.change(&e)
		got, err := defaultGuard.Check(e)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want == "" && (got.Tenant == "" || got.State == ""):
			t.Errorf("%s: defaults are missing", c.name)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
}

// TestStaticKeepsItsOwn: what the caller does with his endpoints later changes nothing.
func TestStaticKeepsItsOwn(t *testing.T) {
	t.Parallel()
	e := endpointAt("a", "http://127.0.0.1:1/a")
	e.Events, e.Metadata, e.Headers = []string{"a.*"}, map[string]string{"k": "v"}, map[string]string{"X-A": "v"}
	e.Retiring = []RetiringSecret{{signature.NewSecret(), noon}}
	s := static(t, e)
	want := fmt.Sprintf("%q %q %q %v", e.Events, e.Metadata, e.Headers, e.Retiring[0].Until)
	e.Events[0], e.Metadata["k"], e.Headers["X-A"], e.Retiring[0].Until = "b.*", "w", "w", time.Time{}
	got, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%q %q %q %v", got.Events, got.Metadata, got.Headers, got.Retiring[0].Until); text != want {
		t.Errorf("kept %s, want %s", text, want)
	}
}

func TestStaticRefusesARetiringSecretOfAnother(t *testing.T) {
	t.Parallel()
	a, b := endpointAt("a", "http://127.0.0.1:1/a"), endpointAt("b", "http://127.0.0.1:1/b")
	b.Retiring = []RetiringSecret{{a.Secrets[0], noon}}
	if _, err := NewStatic(localGuard(t), a, b); err == nil || !strings.Contains(err.Error(), `retiring[0] is also used by endpoint "a"`) {
		t.Error(err)
	}
}

func TestStaticMatching(t *testing.T) {
	t.Parallel()
	all, paid, other := endpointAt("all", "http://127.0.0.1:1/"), endpointAt("paid", "http://127.0.0.1:1/"), endpointAt("other", "http://127.0.0.1:1/")
	paid.Events, paid.State, other.Tenant = []string{"invoice.*"}, StatePaused, "other"
	s := static(t, paid, other, all)
	for _, c := range []struct{ tenant, eventType, want string }{
		{"", "invoice.paid", "[all paid]"}, {DefaultTenant, "user.created", "[all]"}, {"other", "invoice.paid", "[other]"}, {"nobody", "a", "[]"},
	} {
		found, err := s.Matching(c.tenant, c.eventType)
		ids := []string{}
		for _, e := range found {
			ids = append(ids, e.ID)
		}
		if fmt.Sprint(ids) != c.want || err != nil {
			t.Errorf("%s of %q: %v, %v, want %s", c.eventType, c.tenant, ids, err, c.want)
		}
	}
}
