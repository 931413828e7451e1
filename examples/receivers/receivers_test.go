package receivers

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
)

const maxBody = 1 << 20 // the receivers' own limit

// delivery is one call of a real sender: by its own clock, which may be wrong, and over a line on which somebody may meddle.
type delivery struct {
	id     string
	body   string
	signed []signature.Secret
	retire []webhook.RetiringSecret // sign beside those until their time
	off    time.Duration            // of the sender's clock
	meddle func(*http.Request)      // changes headers on the way
	forge  func(body []byte) []byte // changes the body on the way
}

// deliver returns the status that the receiver at target answered.
func deliver(t *testing.T, target string, d delivery) int {
	t.Helper()
	if d.meddle != nil || d.forge != nil {
		target = wire(t, target, d)
	}
	guard, err := webhook.NewGuard(webhook.GuardConfig{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := webhook.Endpoint{ID: "receiver", URL: target, AllowHTTP: true, Secrets: d.signed, Retiring: d.retire}
	endpoints, err := webhook.NewStatic(guard, endpoint)
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Now().Add(d.off) }
	sender, err := webhook.NewSender(webhook.Config{Endpoints: endpoints, Guard: guard, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	response, err := sender.Send(t.Context(), endpoint, webhook.Delivery{ID: d.id, Body: []byte(d.body)})
	if err != nil {
		t.Fatal(err)
	}
	if response.Err != nil {
		t.Fatal(response.Err)
	}
	return response.Status
}

// wire returns the address of a proxy that passes deliveries on as d says.
func wire(t *testing.T, target string, d delivery) string {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		if d.meddle != nil {
			d.meddle(r.Out)
		}
		if d.forge != nil {
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				t.Error(err)
			}
			body = d.forge(body)
			r.Out.Body, r.Out.ContentLength = http.NoBody, int64(len(body))
			if len(body) > 0 {
				r.Out.Body = io.NopCloser(bytes.NewReader(body))
			}
		}
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL + to.Path
}

// The receivers of the guide take what was signed for them, once, and nothing else.
func TestReceivers(t *testing.T) {
	t.Parallel()
	for name, command := range commands(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			current, old := signature.NewSecret(), signature.NewSecret()
			r := start(t, command, current, old)
			accepts(t, r, current, old)
			refuses(t, r, current)
			tooLarge(t, r, name == "python")
			beginsToRotate(t, start(t, command, old), current, old)
			if status := deliver(t, strings.TrimSuffix(r.url, "hooks"), delivery{id: "path", body: "{}", signed: []signature.Secret{current}}); status != http.StatusNotFound {
				t.Errorf("another path: answered %d", status)
			}
		})
	}
}

func accepts(t *testing.T, r receiver, current, old signature.Secret) {
	t.Helper()
	one := []signature.Secret{current}
	for _, d := range []delivery{
		{id: "plain", body: `{"paid":true}`, signed: one},
		{id: "empty", signed: one},
		{id: "spaces", body: "\ufeff {\"a\" : 1.0,\r\n \"b\":\"\u2028é\"} \n", signed: one},
		{id: "bytes", body: "\x00\xff\xfe\x80\r", signed: one},
		{id: "large", body: strings.Repeat("x", maxBody), signed: one},
		{id: "slow_clock", body: "{}", signed: one, off: -4 * time.Minute},
		{id: "fast_clock", body: "{}", signed: one, off: 4 * time.Minute},
		{id: "old_secret", body: "{}", signed: []signature.Secret{old}},
		{id: "both_secrets", body: "{}", signed: []signature.Secret{current, old}},
		{id: "foreign_first", body: "{}", signed: []signature.Secret{signature.NewSecret(), current}},
		{id: "other_versions", body: "{}", signed: one, meddle: func(r *http.Request) {
			r.Header.Set(signature.HeaderSignature, "v2,AAAA x v1 v1, "+r.Header.Get(signature.HeaderSignature))
		}},
		{id: `!"#$%&'()*+,-/:;<=>?@[\]^_{|}~` + "`", body: "{}", signed: one},
	} {
		for _, verb := range []string{"received", "again"} {
			if status := deliver(t, r.url, d); status != http.StatusNoContent {
				t.Errorf("%s: answered %d", d.id, status)
				break
			}
			want := verb + " " + d.id
			if verb == "received" {
				want = fmt.Sprintf("received %s, %d bytes", d.id, len(d.body))
			}
			if line := r.line(t); line != want {
				t.Errorf("printed %q, want %q", line, want)
			}
		}
	}
}

func refuses(t *testing.T, r receiver, current signature.Secret) {
	t.Helper()
	header := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(name)] = values }
	}
	change := func(name string, how func(string) string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, how(r.Header.Get(name))) }
	}
	for name, c := range map[string]struct {
		delivery
		want int
	}{
		"tampered":              {delivery{forge: func([]byte) []byte { return []byte(`{"paid":tru}`) }}, 401},
		"laid out anew":         {delivery{forge: func([]byte) []byte { return []byte(`{"paid": true}`) }}, 401},
		"cut":                   {delivery{forge: func(b []byte) []byte { return b[:len(b)-1] }}, 401},
		"emptied":               {delivery{forge: func([]byte) []byte { return nil }}, 401},
		"old":                   {delivery{off: -6 * time.Minute}, 401},
		"from the future":       {delivery{off: 6 * time.Minute}, 401},
		"old with a new time":   {delivery{off: -6 * time.Minute, meddle: header(signature.HeaderTimestamp, fmt.Sprint(time.Now().Unix()))}, 401},
		"another secret":        {delivery{signed: []signature.Secret{signature.NewSecret(), signature.NewSecret()}}, 401},
		"another id":            {delivery{meddle: header(signature.HeaderID, "another")}, 401},
		"no id":                 {delivery{meddle: header(signature.HeaderID)}, 400},
		"two ids":               {delivery{meddle: header(signature.HeaderID, "bad", "bad")}, 400},
		"id with a dot":         {delivery{meddle: header(signature.HeaderID, "b.ad")}, 400},
		"no timestamp":          {delivery{meddle: header(signature.HeaderTimestamp)}, 400},
		"timestamp of words":    {delivery{meddle: header(signature.HeaderTimestamp, "now")}, 400},
		"timestamp with a sign": {delivery{meddle: change(signature.HeaderTimestamp, func(v string) string { return "+" + v })}, 400},
		"no signature":          {delivery{meddle: header(signature.HeaderSignature)}, 400},
		"two signatures":        {delivery{meddle: header(signature.HeaderSignature, "v1,AAAA", "v1,AAAA")}, 400},
		"empty entry":           {delivery{meddle: header(signature.HeaderSignature, "v1,")}, 401},
		"no base64":             {delivery{meddle: header(signature.HeaderSignature, "v1,\xe9*")}, 401},
		"cut signature":         {delivery{meddle: change(signature.HeaderSignature, func(v string) string { return v[:20] })}, 401},
		"longer signature":      {delivery{meddle: change(signature.HeaderSignature, func(v string) string { return v[:len(v)-1] + "AAAA" })}, 401},
		"another version":       {delivery{meddle: change(signature.HeaderSignature, func(v string) string { return "v2" + v[2:] })}, 401},
		"asymmetric by name":    {delivery{meddle: change(signature.HeaderSignature, func(v string) string { return "v1a" + v[2:] })}, 401},
	} {
		d := c.delivery
		d.id, d.body = "bad", `{"paid":true}`
		if d.signed == nil {
			d.signed = []signature.Secret{current}
		}
		if status := deliver(t, r.url, d); status != c.want {
			t.Errorf("%s: answered %d, want %d", name, status, c.want)
		}
	}
	// None of them counts as seen.
	if status := deliver(t, r.url, delivery{id: "bad", body: `{"paid":true}`, signed: []signature.Secret{current}}); status != http.StatusNoContent {
		t.Errorf("the true one: answered %d", status)
	}
	if line := r.line(t); line != "received bad, 13 bytes" {
		t.Errorf("the true one: printed %q", line)
	}
}

// beginsToRotate is for a receiver that does not know the new secret yet.
func beginsToRotate(t *testing.T, r receiver, current, old signature.Secret) {
	t.Helper()
	d := delivery{id: "in_the_window", body: "{}", signed: []signature.Secret{current}, retire: []webhook.RetiringSecret{{Secret: old, Until: time.Now().Add(time.Hour)}}}
	if status := deliver(t, r.url, d); status != http.StatusNoContent {
		t.Errorf("in the window: answered %d", status)
	}
	d.id, d.retire[0].Until = "after_it", time.Now().Add(-time.Second)
	if status := deliver(t, r.url, d); status != http.StatusUnauthorized {
		t.Errorf("after the window: answered %d", status)
	}
}

// tooLarge sends no more than it takes to be refused: what a receiver leaves unread may cost the answer. byLength says that it goes by the
// length that is announced.
func tooLarge(t *testing.T, r receiver, byLength bool) {
	t.Helper()
	target, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", target.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", target.Path, target.Host, 2*maxBody); err != nil {
		t.Fatal(err)
	}
	if !byLength {
		if _, err := conn.Write(make([]byte, maxBody+1)); err != nil {
			t.Fatal(err)
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: answered %d", response.StatusCode)
	}
}
