package endpoints

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
)

// diff compares whole endpoints: policies, secrets and times have methods that tell whether they are the same.
func diff(want, got any) string { return cmp.Diff(want, got) }

func policy(t *rapid.T) schedule.Backoff {
	delay := func(name string) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(48*time.Hour)).Draw(t, name))
	}
	jitter := schedule.JitterFull
	if rapid.Bool().Draw(t, "factor jitter") {
		low := rapid.Float64Range(0.1, 1).Draw(t, "low")
		j, err := schedule.JitterFactor(low, low+rapid.Float64Range(0, 1).Draw(t, "width"))
		if err != nil {
			t.Fatal(err)
		}
		jitter = j
	}
	var p schedule.Backoff
	var err error
	switch rapid.IntRange(0, 4).Draw(t, "shape") {
	case 0:
		return schedule.Backoff{}
	case 1:
		return schedule.WebhookBackoff
	case 2:
		base := delay("base")
		p, err = schedule.Exponential(base, rapid.Float64Range(1.1, 100).Draw(t, "factor"), base+delay("more"), jitter)
	case 3:
		p, err = schedule.Fixed([]time.Duration{delay("first"), delay("second")}, jitter)
	case 4:
		p, err = schedule.Constant(delay("delay"), jitter)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func drawEndpoint(t *rapid.T) webhook.Endpoint {
	text := rapid.String()
	e := webhook.Endpoint{
		ID: rapid.StringMatching(`[a-z0-9_-]{1,20}`).Draw(t, "id"), Tenant: "acme", URL: "https://example.com/" + rapid.StringMatching(`[a-z0-9/]*`).Draw(t, "path"),
		Events: rapid.SliceOfN(rapid.SampledFrom([]string{"*", "a.*", "a.b"}), 0, 3).Draw(t, "events"), Secrets: []signature.Secret{signature.NewSecret()},
		ClientErrors: webhook.ClientErrorsReject, Timeout: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "timeout")),
		Concurrency: rapid.IntRange(1, 100).Draw(t, "concurrency"), Rate: rapid.Float64Range(0, 1e6).Draw(t, "rate"), Backoff: policy(t),
		AllowHTTP: rapid.Bool().Draw(t, "http"), Ordered: rapid.Bool().Draw(t, "ordered"), Shared: rapid.Bool().Draw(t, "shared"), Adaptive: rapid.Bool().Draw(t, "adaptive"),
		State: webhook.StatePaused, Reason: text.Draw(t, "reason"), Since: time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "since"), 0).UTC(),
		TLS: webhook.TLS{Certificate: text.Draw(t, "certificate"), Key: text.Draw(t, "key"), RootCAs: text.Draw(t, "authorities")},
	}
	if rapid.Bool().Draw(t, "more") {
		e.Headers = map[string]string{"X-A": string(rapid.SliceOf(rapid.Byte()).Draw(t, "header"))} // not always UTF-8
		e.Metadata = map[string]string{text.Draw(t, "name"): text.Draw(t, "value")}
		e.Retiring = []webhook.RetiringSecret{{Secret: signature.NewSecret(), Until: time.Unix(0, rapid.Int64Range(1, 1e18).Draw(t, "until")).UTC()}}
	}
	if len(e.Events) == 0 {
		e.Events = nil
	}
	return e
}

func TestEncodeDecode(t *testing.T) {
	t.Parallel()
	keys := ring(t)
	rapid.Check(t, func(t *rapid.T) {
		want := drawEndpoint(t)
		r, err := keys.encode(want)
		if err != nil {
			t.Fatal(err)
		}
		for name, secret := range map[string]string{"url": want.URL[len("https://example.com/"):], "secret": want.Secrets[0].Reveal(), "key": want.TLS.Key} {
			if len(secret) > 20 && strings.Contains(string(r.Settings)+string(r.Sealed), secret) {
				t.Fatalf("%s is in the clear in %s", name, r.Settings)
			}
		}
		if !strings.Contains(string(r.Settings), `"origin":"https://example.com"`) {
			t.Fatalf("no origin in %s", r.Settings)
		}
		got, err := keys.decode(r)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(want, got.Endpoint); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

func TestDecodeShowsWhatIsNotSecret(t *testing.T) {
	t.Parallel()
	keys := ring(t)
	e := webhook.Endpoint{ID: "a", Tenant: "acme", URL: "https://example.com/secret", Secrets: []signature.Secret{signature.NewSecret()}, Events: []string{"a.*"}}
	r, err := keys.encode(e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ring(t).decode(r)
	if !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), `endpoint "a"`) {
		t.Errorf("with another key: %v", err)
	}
	if got.ID != "a" || got.Tenant != "acme" || len(got.Events) != 1 || got.URL != "" || len(got.Secrets) != 0 {
		t.Errorf("shows %+v", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	keys := ring(t)
	good, err := keys.encode(webhook.Endpoint{ID: "a", URL: "https://example.com/", Secrets: []signature.Secret{signature.NewSecret()}})
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(v any) []byte {
		plain, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return keys.seal("a", plain)
	}
	for name, c := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"no settings":       {func(r *Record) { r.Settings = nil }, "settings cannot be read"},
		"later settings":    {func(r *Record) { r.Settings = []byte(`{"version":2}`) }, "version 2"},
		"unknown backoff":   {func(r *Record) { r.Settings = []byte(`{"schedule":"sometimes"}`) }, `"sometimes"`},
		"another's secrets": {func(r *Record) { r.ID = "b" }, "does not open"},
		"no JSON":           {func(r *Record) { r.Sealed = keys.seal("a", []byte("whsec_text")) }, "newer program"},
		"no secret":         {func(r *Record) { r.Sealed = sealed(secrets{Secrets: []string{"whsec_text"}}) }, "newer program"},
		"no old secret":     {func(r *Record) { r.Sealed = sealed(secrets{Retiring: []retiring{{Secret: "whsec_text"}}}) }, "newer program"},
	} {
		r := good
		c.change(&r)
		if _, err := keys.decode(r); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "whsec_text") {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

// TestDecodeEarlierRecord: a record is read, and its settings are written, as the program of 2026-11 wrote them, which called the backoff schedule.
func TestDecodeEarlierRecord(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/record-1.json")
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Key    string
		Record Record
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	keys, err := ParseKeyring(stored.Key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := signature.ParseSecret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if err != nil {
		t.Fatal(err)
	}
	retired, err := signature.ParseSecret("whsec_HxAREhMUFRYXGBkaGxwdHh8AAQIDBAUGBwgJCgsMDQ4=")
	if err != nil {
		t.Fatal(err)
	}
	backoff, err := schedule.ParseBackoff("fixed(10s, 1m, x0.8..1.2)")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	want := webhook.Endpoint{
		ID: "shop", Tenant: "acme", URL: "https://hooks.example.com/in?token=t0", Events: []string{"invoice.*"}, Secrets: []signature.Secret{secret},
		Retiring: []webhook.RetiringSecret{{Secret: retired, Until: at.Add(time.Hour)}}, Headers: map[string]string{"X-Api-Key": "k1"},
		ClientErrors: webhook.ClientErrorsReject, Timeout: 10 * time.Second, Concurrency: 2, Rate: 2.5, Backoff: backoff, Ordered: true, Shared: true, Adaptive: true,
		State: webhook.StatePaused, Reason: "moving", Since: at, Metadata: map[string]string{"owner": "ann"},
	}
	got, err := keys.decode(stored.Record)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(want, got.Endpoint); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	again, err := keys.encode(want)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(stored.Record.Settings), string(again.Settings)); d != "" {
		t.Errorf("settings are written otherwise (-before +now):\n%s", d)
	}
}
