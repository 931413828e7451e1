package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// authority signs certificates.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	template := certificateFor(name)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert, a.key = template, newKey(t)
	a.pem, a.cert = a.sign(template, a.key)
	return a
}

func certificateFor(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) (string, *x509.Certificate) {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), cert
}

// issue returns a certificate and its key as PEM.
func (a *authority) issue(name string) (certificate, key string) {
	a.t.Helper()
	private := newKey(a.t)
	certificate, _ = a.sign(certificateFor(name), private)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// newTLSReceiver is a receiver whose certificate own signed, and which wants one of clients', if that is not nil.
func newTLSReceiver(t *testing.T, own, clients *authority, answer func(http.ResponseWriter, *http.Request, int)) *receiver {
	t.Helper()
	rec := &receiver{}
	rec.Server = httptest.NewUnstartedServer(rec.handler(answer))
	certificate, key := own.issue("receiver")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	rec.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		rec.TLS.ClientAuth, rec.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		rec.TLS.ClientCAs.AddCert(clients.cert)
	}
	rec.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	rec.StartTLS()
	t.Cleanup(rec.Close)
	return rec
}

// TestMutualTLS: a receiver that demands a certificate gets the endpoint's own, and one that was rotated from the next call on: connections that
// were made with the old one serve nobody.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	rec := newTLSReceiver(t, theirs, ours, func(w http.ResponseWriter, r *http.Request, _ int) {
		_, _ = w.Write([]byte(r.TLS.PeerCertificates[0].Subject.CommonName))
	})
	s := newSender(t, Config{})
	e := endpointAt("e", rec.URL)
	for _, name := range []string{"first", "first", "second"} {
		if name != "first" || e.TLS.Key == "" {
			e.TLS.Certificate, e.TLS.Key = ours.issue(name)
		}
		e.TLS.RootCAs = theirs.pem
		if r := send(t, s, e); r.Status != http.StatusOK || string(r.Excerpt) != name {
			t.Errorf("%s: %+v %q", name, r, r.Excerpt)
		}
	}
	if n := len(s.client.transports.own); n != 2 {
		t.Errorf("%d transports for two certificates", n)
	}

	none := e
	none.TLS.Certificate, none.TLS.Key = "", ""
	foreign := e
	foreign.TLS.Certificate, foreign.TLS.Key = theirs.issue("foreign")
	for name, e := range map[string]Endpoint{"none": none, "of another authority": foreign} {
		r := send(t, s, e)
		if diff := cmp.Diff(outage, verdictOf(t, judge(r, e, noon))); diff != "" {
			t.Errorf("certificate %s: %+v (-want +got):\n%s", name, r, diff)
		}
	}
	if n := len(rec.requests()); n != 3 {
		t.Errorf("%d requests arrived, want 3", n)
	}
}

// TestPrivateAuthority: an endpoint's own authorities stand in place of the sender's: they let in what those would not, and keep out what those
// would let in. To the breaker a certificate of somebody else is an outage.
func TestPrivateAuthority(t *testing.T) {
	t.Parallel()
	private, other := newAuthority(t, "private"), newAuthority(t, "other")
	rec := newTLSReceiver(t, private, nil, status(http.StatusOK))
	pool := x509.NewCertPool()
	pool.AddCert(private.cert)
	s := newSender(t, Config{RootCAs: pool})
	stranger := newSender(t, Config{})
	e := endpointAt("e", rec.URL)
	with, wrong := e, e
	with.TLS.RootCAs, wrong.TLS.RootCAs = other.pem+private.pem, other.pem
	for _, c := range []struct {
		name string
		s    *Sender
		e    Endpoint
		want verdict
	}{
		{"the sender's", s, e, success},
		{"the system's", stranger, e, outage},
		{"the endpoint's", stranger, with, success},
		{"a wrong one", s, wrong, outage},
	} {
		r := send(t, c.s, c.e)
		if diff := cmp.Diff(c.want, verdictOf(t, judge(r, c.e, noon))); diff != "" {
			t.Errorf("%s: %+v (-want +got):\n%s", c.name, r, diff)
		}
		if c.want == outage && (r.Phase != PhaseNotSent || !errors.As(r.Err, new(*tls.CertificateVerificationError))) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// TestOwnTransportIsGuarded: an endpoint's own TLS options change nothing about where deliveries may go and what is read of an answer.
func TestOwnTransportIsGuarded(t *testing.T) {
	t.Parallel()
	private := newAuthority(t, "private")
	rec := newTLSReceiver(t, private, nil, func(w http.ResponseWriter, _ *http.Request, _ int) {
		_, _ = w.Write(make([]byte, maxRead))
	})
	e := endpointAt("e", rec.URL)
	e.TLS.RootCAs = private.pem
	s := newSender(t, Config{})
	if r := send(t, s, e); r.Status != http.StatusOK || len(r.Excerpt) != maxExcerpt {
		t.Errorf("%d, %d bytes", r.Status, len(r.Excerpt))
	}
	own, plain := s.client.transports.own[e.TLS.sum()].pooled, s.client.transports.plain.pooled
	if own.MaxResponseHeaderBytes != plain.MaxResponseHeaderBytes || own.ResponseHeaderTimeout != plain.ResponseHeaderTimeout ||
		own.TLSHandshakeTimeout != plain.TLSHandshakeTimeout || own.MaxIdleConnsPerHost != plain.MaxIdleConnsPerHost || own.Proxy != nil ||
		!own.DisableCompression || own.TLSClientConfig.MinVersion != tls.VersionTLS12 || own.Protocols.HTTP2() {
		t.Errorf("limits differ: %+v", own)
	}

	names := newDNSServer(t, "127.0.0.1")
	guard, err := NewGuard(GuardConfig{AnyPort: true, Resolver: names.resolver()})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(rec.Listener.Addr().String())
	e.URL = "https://inside.example.com:" + port
	if r := send(t, newSender(t, Config{Guard: guard}), e); !errors.Is(r.Err, ErrBlocked) || r.Phase != PhaseNotSent {
		t.Errorf("%+v", r)
	}
}

// TestTransportsAreBounded: those that are used least make room, and those that nobody uses go; one that is dropped while a call uses it stays
// until the call is over.
func TestTransportsAreBounded(t *testing.T) {
	t.Parallel()
	ts := newTransports(&http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}})
	ts.limit = 3
	var roots []TLS
	for i := range 5 {
		roots = append(roots, TLS{RootCAs: newAuthority(t, fmt.Sprint(i)).pem})
	}
	take := func(o TLS, now time.Time) *transport {
		t.Helper()
		got, err := ts.take(o, now)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	busy := take(roots[0], noon)
	for i := range 5 {
		ts.give(take(roots[i], noon.Add(time.Duration(i)*time.Second)))
	}
	if n := len(ts.own); n != 3 || !busy.dropped || busy.users != 1 {
		t.Errorf("%d transports, the one in use: %+v", n, busy)
	}
	ts.give(busy)
	if again := take(roots[4], noon.Add(keepTransport)); again.used != noon.Add(keepTransport) || len(ts.own) != 3 {
		t.Errorf("%d transports", len(ts.own))
	} else {
		ts.give(again)
	}
	held := take(roots[4], noon.Add(2*keepTransport))
	if len(ts.own) != 1 {
		t.Errorf("%d transports are left, nobody uses more than one", len(ts.own))
	}
	ts.close()
	if len(ts.own) != 0 || !held.dropped {
		t.Error("close forgets none")
	}
	ts.give(held)
	if take(TLS{}, noon) != ts.plain {
		t.Error("no options, and not the common transport")
	}
}

// TestTLSOptionsRefused: options that cannot be read make no call, and no error quotes them.
func TestTLSOptionsRefused(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, "a")
	certificate, key := a.issue("hunter2")
	_, otherKey := a.issue("other")
	s := newSender(t, Config{})
	for want, options := range map[string]TLS{
		"belong together: give both":    {Certificate: certificate},
		"cannot be read, or do not":     {Certificate: certificate, Key: otherKey},
		"certificate and key cannot be": {Certificate: "hunter2", Key: key},
		"root_cas holds no certificate": {RootCAs: "hunter2"},
	} {
		e := endpointAt("e", "https://127.0.0.1")
		e.TLS = options
		_, err := s.Send(t.Context(), e, event)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if n := len(s.client.transports.own); n != 0 {
		t.Errorf("%d transports are kept for options that cannot be read", n)
	}
}
