package webhook

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

// What is shown of a response is one line, and holds nothing of what was sent to the endpoint.
func TestShown(t *testing.T) {
	t.Parallel()
	e := Endpoint{URL: "https://example.com/hooks/tok_98765", Headers: map[string]string{"X-Api-Key": "k-98765"}}
	for name, tt := range map[string]struct {
		response     Response
		text, reason string
	}{
		"body":    {Response{Status: 500, Excerpt: []byte("no\r\nk-98765 at /hooks/tok_98765\x00")}, "no [left out] at [left out]", ""},
		"error":   {Response{Err: errors.New("malformed response \"k-98765\"\n")}, "", `malformed response "[left out]"`},
		"blocked": {Response{Err: fmt.Errorf("dial 10.0.0.1: %w", ErrBlocked)}, "", ErrBlocked.Error()},
	} {
		if text, reason := tt.response.Shown(e); text != tt.text || reason != tt.reason {
			t.Errorf("%s: %q and %q, want %q and %q", name, text, reason, tt.text, tt.reason)
		}
	}
	if _, reason := (Response{Err: errors.New(strings.Repeat("x", 1000))}).Shown(e); len(reason) > maxErrorText {
		t.Errorf("a reason of %d bytes", len(reason))
	}
}

// Neither our own addresses nor those of name servers are shown.
func TestNoAddressIsShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"read tcp 10.1.2.3:50070->10.9.8.7:443: read: connection reset by peer":                                  "read tcp: read: connection reset by peer",
		"net/http: HTTP/1.x transport connection broken: write tcp [fd00::1%eth0]:5->[fd00::2]:443: broken pipe": "net/http: HTTP/1.x transport connection broken: write tcp: broken pipe",
		"dial tcp: lookup example.com on 10.255.255.53:53: no such host":                                         "dial tcp: lookup example.com: no such host",
		"dial tcp: lookup example.com on [fd00::53]:53: read udp 10.1.2.3:4->10.255.255.53:53: i/o timeout":      "dial tcp: lookup example.com: read udp: i/o timeout",
		"dial tcp 10.9.8.7:443: connect: connection refused":                                                     "dial tcp: connect: connection refused",
		"10.1.2.3:80 is on fire": "is on fire",
		"tls: failed to verify certificate: x509: certificate is valid for 10.9.8.7, not example.com, at 12:00:01": "tls: failed to verify certificate: x509: certificate is valid for 10.9.8.7, not example.com, at 12:00:01",
	} {
		if _, got := (Response{Err: errors.New(text)}).Shown(Endpoint{}); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
	server := newRawServer(t, func(c net.Conn, _ <-chan struct{}) bool {
		_ = c.(*net.TCPConn).SetLinger(0) // a reset
		return false
	})
	e := endpointAt("a", server.url)
	r := send(t, newSender(t, Config{Endpoints: static(t, e)}), e)
	_, shown := r.Shown(e)
	for _, text := range []string{shown, judge(r, e, noon).Error()} {
		if !strings.Contains(text, "read tcp: ") || strings.Contains(text, "127.0.0.1") {
			t.Errorf("a reset: %s", text)
		}
	}
}
