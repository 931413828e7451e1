package webhook

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/webhook/internal/deliver"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// FuzzHeaders checks what must hold of every request with headers that were accepted: read by a server it has those, once and as they were
// given, beside ours, which they have not changed; and its body is where it was.
func FuzzHeaders(f *testing.F) {
	for _, c := range [][4]string{
		{"X-Api-Key", "k1", "evt_1", "application/json"},
		{"x-api-key", " spaces\tinside ", "a", ""},
		{"Content-Type", "text/plain", "b", "a/b; c=d"},
		{"X-A", "a\r\nHost: evil", "c", ""},
		{"X-A\r\nHost", "evil", "d", ""},
		{"X-A", "\xff\x80", "e", "\xff"},
		{"webhook-id", "evil", "f", ""},
		{"Content-Length", "0", "g", ""},
		{"transfer-encoding", "chunked", "h", ""},
		{"Cookie", "a=b", "a.b", ""},
		{"User-Agent", "mine", strings.Repeat("i", 200), "x"},
		{"", "", "", ""},
	} {
		f.Add(c[0], c[1], c[2], c[3])
	}
	sender, err := NewSender(Config{Endpoints: unchecked{}})
	if err != nil {
		f.Fatal(err)
	}
	const body = "body\r\n\r\n"
	f.Fuzz(func(t *testing.T, name, value, id, contentType string) {
		d, err := deliveryOf(&worker.Job{ID: id, Payload: []byte(body), Headers: map[string]string{deliver.HeaderContentType: contentType}})
		if err != nil {
			return
		}
		headers := map[string]string{name: value}
		if checkHeaders(headers) != nil {
			return
		}
		e := Endpoint{ID: "e", URL: "https://example.com/hook", Headers: headers, Secrets: []signature.Secret{signature.NewSecret()}}
		h, err := sender.header(e, d)
		if err != nil {
			t.Fatalf("%q: %v", id, err)
		}
		u, err := defaultGuard.checkURL(e.URL, false)
		if err != nil {
			t.Fatal(err)
		}
		var wire bytes.Buffer
		if err := (call{target: u, header: h, body: d.Body}).request(t.Context()).Write(&wire); err != nil {
			t.Fatalf("%q: %q: %v", name, value, err)
		}
		r, err := http.ReadRequest(bufio.NewReader(&wire))
		if err != nil {
			t.Fatalf("%q: %q makes a request that nobody can read: %v", name, value, err)
		}
		got, err := io.ReadAll(r.Body)
		if err != nil || string(got) != body || r.Host != "example.com" || r.Method != http.MethodPost || r.URL.Path != "/hook" || len(r.TransferEncoding) != 0 {
			t.Fatalf("%q: %q: %s %s at %s, body %q, %v", name, value, r.Method, r.URL, r.Host, got, err)
		}
		want := strings.Trim(value, " \t")
		if strings.EqualFold(name, "content-type") && contentType != "" {
			want = strings.Trim(contentType, " \t")
		}
		if values := r.Header.Values(name); len(values) != 1 || values[0] != want {
			t.Fatalf("%q: %q arrives as %q", name, value, values)
		}
		if err := verifierFor(t, e.Secrets[0]).Verify(r.Header, got, sender.cfg.Now()); err != nil {
			t.Fatalf("%q: %q, event %q: %v", name, value, id, err)
		}
		if len(r.Header) > 7 { // ours and the one: Go's writer adds none but Host and Content-Length
			t.Fatalf("%q: %q adds headers: %v", name, value, r.Header)
		}
	})
}

// TestHeadersReachTheReceiver is the fuzzed property once over a real connection.
func TestHeadersReachTheReceiver(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, status(http.StatusOK))
	e := endpointAt("e", rec.URL)
	e.Headers = map[string]string{"x-lower": " v ", "X-Bytes": "\xff\x80", "Authorization": "Bearer k"}
	if r := send(t, newSender(t, Config{}), e); r.Status != http.StatusOK {
		t.Fatalf("%+v", r)
	}
	got := rec.requests()[0].header
	for name, want := range map[string]string{"X-Lower": "v", "X-Bytes": "\xff\x80", "Authorization": "Bearer k", "Content-Type": defaultContentType} {
		if values := got.Values(name); len(values) != 1 || values[0] != want {
			t.Errorf("%s: %q", name, values)
		}
	}
}
