package webhook

import (
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/webhook/signature"
)

// TestMain fails on goroutines that outlive the tests: each one would be a connection that nobody closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// localGuard lets tests reach servers on this machine.
func localGuard(t testing.TB) *Guard {
	t.Helper()
	g, err := NewGuard(GuardConfig{AnyPort: true, Allow: loopback})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// newSender returns a sender whose guard allows loopback, closed at the end of the test.
func newSender(t testing.TB, cfg Config) *Sender {
	t.Helper()
	if cfg.Guard == nil {
		cfg.Guard = localGuard(t)
	}
	if cfg.Endpoints == nil {
		cfg.Endpoints = static(t)
	}
	s, err := NewSender(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func static(t testing.TB, endpoints ...Endpoint) *Static {
	t.Helper()
	s, err := NewStatic(localGuard(t), endpoints...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// endpointAt returns a valid endpoint with a secret of its own.
func endpointAt(id, url string) Endpoint {
	return Endpoint{ID: id, URL: url, Secrets: []signature.Secret{signature.NewSecret()}, AllowHTTP: true}
}

func mustSecret(t testing.TB, text string) signature.Secret {
	t.Helper()
	s, err := signature.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var noon = time.Date(2026, 8, 3, 12, 0, 0, 0, time.UTC)
