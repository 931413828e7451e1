package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/webhook/signature"
)

func TestCheckEndpoint(t *testing.T) {
	t.Parallel()
	secret := signature.NewSecret()
	for _, c := range []struct {
		name   string
		change func(*Endpoint)
		want   string // in the error; empty means accepted
	}{
		{"minimal", func(*Endpoint) {}, ""},
		{"id of all allowed characters", func(e *Endpoint) { e.ID = "abc-xyz_09" }, ""},
		{"no id", func(e *Endpoint) { e.ID = "" }, "id of 0 bytes"},
		{"long id", func(e *Endpoint) { e.ID = strings.Repeat("a", 129) }, "id of 129 bytes"},
		{"id with upper case", func(e *Endpoint) { e.ID = "EP1" }, "lower-case"},
		{"id with a dot", func(e *Endpoint) { e.ID = "a.b" }, "lower-case"},
		{"id with a slash", func(e *Endpoint) { e.ID = "a/b" }, "lower-case"},
		{"http", func(e *Endpoint) { e.URL = "http://example.com" }, "allow_http"},
		{"http allowed", func(e *Endpoint) { e.URL, e.AllowHTTP = "http://example.com", true }, ""},
		{"no secret", func(e *Endpoint) { e.Secrets = nil }, "secrets: at least one"},
		{"empty secret", func(e *Endpoint) { e.Secrets = []signature.Secret{secret, {}} }, "secrets[1] is empty"},
		{"doubled secret", func(e *Endpoint) { e.Secrets = []signature.Secret{secret, signature.NewSecret(), secret} }, "secrets[2] is the same as secrets[0]"},
		{"client errors", func(e *Endpoint) { e.ClientErrors = "ignore" }, `client_errors "ignore"`},
		{"timeout", func(e *Endpoint) { e.Timeout = -time.Second }, "timeout -1s"},
		{"concurrency", func(e *Endpoint) { e.Concurrency = -1 }, "concurrency -1"},
		{"negative rate", func(e *Endpoint) { e.Rate = -1 }, "rate -1"},
		{"rate not a number", func(e *Endpoint) { e.Rate = math.NaN() }, "rate NaN"},
		{"huge rate", func(e *Endpoint) { e.Rate = 1e12 }, "rate 1e+12"},
		{"header", func(e *Endpoint) { e.Headers = map[string]string{"Host": "a"} }, `header "Host" is reserved`},
		{"several", func(e *Endpoint) { e.ID, e.Secrets = "", nil }, "secrets: at least one"},
	} {
		e := Endpoint{ID: "e1", URL: "https://example.com/hook", Secrets: []signature.Secret{secret}}
		c.change(&e)
		got, err := defaultGuard.Check(e)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want == "" && (got.Concurrency != 3 || got.ClientErrors != ClientErrorsRetry):
			t.Errorf("%s: defaults are missing", c.name)
		case c.want == "":
			if pools.NormalizeDestination(got.ID) != got.ID {
				t.Errorf("%s: %q is not its own destination", c.name, got.ID)
			}
		case err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Host", "host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization",
		"TE", "Trailer", "Upgrade", "Expect", "Accept-Encoding", "Webhook-Id", "webhook-signature", "WEBHOOK-TIMESTAMP", "webhook-anything",
		"Idempotency-Key", "X-Idempotency-Key", "", "a b", "a:b", "a\nb", "é", "a\x00",
	} {
		if err := checkHeaders(map[string]string{name: "v"}); err == nil {
			t.Errorf("header %q was accepted", name)
		}
	}
	for _, value := range []string{"a\r\nHost: b", "a\nb", "\x00", "a\x7f"} {
		err := checkHeaders(map[string]string{"X-A": value})
		if err == nil || strings.Contains(err.Error(), value) {
			t.Errorf("value %q: %v", value, err)
		}
	}
	for name, headers := range map[string]map[string]string{
		"the same twice": {"X-Key": "a", "x-key": "b"},
		"too many bytes": {"X-Key": strings.Repeat("a", maxHeaderBytes)},
		"too many":       manyHeaders(maxHeaders + 1),
	} {
		if err := checkHeaders(headers); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	good := manyHeaders(maxHeaders - 3)
	good["Authorization"], good["Content-Type"], good["X-Umlaut"] = "Bearer x", "application/cloudevents+json", "ü"
	if err := checkHeaders(good); err != nil {
		t.Error(err)
	}
}

func manyHeaders(n int) map[string]string {
	headers := make(map[string]string, n)
	for i := range n {
		headers[fmt.Sprintf("X-%d", i)] = "v"
	}
	return headers
}

func TestStatic(t *testing.T) {
	t.Parallel()
	a, b := endpointAt("a", "http://127.0.0.1:1/a"), endpointAt("b", "http://127.0.0.1:1/b")
	s := static(t, b, a)
	if got, err := s.Get(t.Context(), "a"); err != nil || got.URL != a.URL || got.Concurrency != 3 {
		t.Errorf("get: %v, %v", got, err)
	}
	if _, err := s.Get(t.Context(), "c"); !errors.Is(err, ErrUnknownEndpoint) {
		t.Errorf("get of an unknown one: %v", err)
	}
	ids := func() (ids []string) {
		for _, e := range s.All() {
			ids = append(ids, e.ID)
		}
		return ids
	}
	shared := endpointAt("c", "http://127.0.0.1:1/c")
	shared.Secrets = append(shared.Secrets, a.Secrets[0])
	bad := endpointAt("d", "http://127.0.0.1:1/d")
	bad.Concurrency = -1
	for name, list := range map[string][]Endpoint{"shared secret": {a, shared}, "id twice": {a, endpointAt("a", b.URL)}, "one bad": {a, bad}} {
		if err := s.Replace(list); err == nil {
			t.Errorf("%s was accepted", name)
		}
		if diff := cmp.Diff([]string{"a", "b"}, ids()); diff != "" {
			t.Errorf("%s: the old set did not stay (-want +got):\n%s", name, diff)
		}
	}
	if _, err := NewStatic(nil, a); err == nil {
		t.Error("the default guard accepted loopback")
	}
}

// TestStaticSwap reads while the set is replaced; the race detector watches.
func TestStaticSwap(t *testing.T) {
	t.Parallel()
	a := endpointAt("a", "http://127.0.0.1:1/1")
	s := static(t, a)
	var readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if e, err := s.Get(ctx, "a"); err != nil || len(e.Secrets) != 1 {
					t.Errorf("get: %v, %v", e, err)
					return
				}
			}
		})
	}
	for i := range 200 {
		a.URL = fmt.Sprintf("http://127.0.0.1:1/%d", i)
		if err := s.Replace([]Endpoint{a}); err != nil {
			t.Error(err)
		}
	}
	cancel()
	readers.Wait()
}

// TestEndpointShowsNoSecret prints endpoints in every way that we could think of.
func TestEndpointShowsNoSecret(t *testing.T) {
	t.Parallel()
	for _, secret := range []signature.Secret{signature.NewSecret(), mustSecret(t, "whsk_"+strings.Repeat("A", 42)+"E=")} {
		e := Endpoint{
			ID: "e1", URL: "https://u:pw@hooks.example.com/path-secret?token=query-secret", Secrets: []signature.Secret{secret},
			Headers: map[string]string{"X-Api-Key": "header-secret"},
		}
		var shown strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			fmt.Fprintf(&shown, verb+"\n", e)
			fmt.Fprintf(&shown, verb+"\n", []Endpoint{e})
		}
		for _, v := range []any{e, map[string]any{"e": &e}} {
			if err := json.NewEncoder(&shown).Encode(v); err != nil {
				t.Fatal(err)
			}
			slog.New(slog.NewJSONHandler(&shown, nil)).Info("m", "v", v)
			slog.New(slog.NewTextHandler(&shown, nil)).Info("m", "v", v)
		}
		_, text, _ := strings.Cut(secret.Reveal(), "_")
		for _, leak := range []string{text, "header-secret", "path-secret", "query-secret", "pw@"} {
			if strings.Contains(shown.String(), leak) {
				t.Errorf("%q is shown in:\n%s", leak, shown.String())
			}
		}
	}
}
