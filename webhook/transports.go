package webhook

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// maxTransports bounds how many ways to do TLS have connections of their own. Beyond that the one that was used longest ago is closed.
	maxTransports = 1024
	// keepTransport is how long one is kept that nobody uses.
	keepTransport = 5 * time.Minute
)

// transports keeps the connections: one set for all endpoints without TLS options, and one for each different set of those, since a
// connection belongs to the certificate that it was made with. All dial through the same guard, within the same limits. It is safe for
// concurrent use.
type transports struct {
	plain *transport
	limit int

	mu    sync.Mutex
	own   map[[sha256.Size]byte]*transport
	swept time.Time
}

// transport is how calls with one TLS configuration are made. The fields below the line belong to the transports.
type transport struct {
	pooled *http.Transport
	// fresh never reuses a connection.
	fresh *http.Transport

	users   int
	used    time.Time
	dropped bool
}

func newTransport(t *http.Transport) *transport {
	fresh := t.Clone()
	fresh.DisableKeepAlives = true
	return &transport{pooled: t, fresh: fresh}
}

func (t *transport) close() {
	t.pooled.CloseIdleConnections()
	t.fresh.CloseIdleConnections()
}

func newTransports(plain *http.Transport) *transports {
	return &transports{plain: newTransport(plain), limit: maxTransports, own: make(map[[sha256.Size]byte]*transport)}
}

// take returns the transport for an endpoint's TLS options. Give it back once the call is over.
func (ts *transports) take(options TLS, now time.Time) (*transport, error) {
	if options.IsZero() {
		return ts.plain, nil
	}
	key := options.sum()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.sweep(now)
	t := ts.own[key]
	if t == nil {
		made, err := ts.make(options)
		if err != nil {
			return nil, err
		}
		if len(ts.own) >= ts.limit {
			ts.dropOldest()
		}
		t = made
		ts.own[key] = t
	}
	t.users++
	t.used = now
	return t, nil
}

func (ts *transports) make(options TLS) (*transport, error) {
	cfg := ts.plain.pooled.TLSClientConfig.Clone()
	if err := options.apply(cfg); err != nil {
		return nil, err
	}
	t := ts.plain.pooled.Clone()
	t.TLSClientConfig = cfg
	return newTransport(t), nil
}

// give takes a transport back. What was dropped while it was used is closed by its last user.
func (ts *transports) give(t *transport) {
	if t == ts.plain {
		return
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.users--
	if t.dropped && t.users == 0 {
		t.close()
	}
}

// sweep drops what has not been used for long. It looks at all of them, but not often.
func (ts *transports) sweep(now time.Time) {
	if now.Sub(ts.swept) < keepTransport/5 {
		return
	}
	ts.swept = now
	for key, t := range ts.own {
		if t.users == 0 && now.Sub(t.used) >= keepTransport {
			ts.drop(key, t)
		}
	}
}

func (ts *transports) dropOldest() {
	var oldest [sha256.Size]byte
	var found *transport
	for key, t := range ts.own {
		if found == nil || t.used.Before(found.used) {
			oldest, found = key, t
		}
	}
	if found != nil {
		ts.drop(oldest, found)
	}
}

// drop forgets a transport. Calls that use it go on.
func (ts *transports) drop(key [sha256.Size]byte, t *transport) {
	delete(ts.own, key)
	t.dropped = true
	t.close()
}

// close closes idle connections and forgets what nobody uses.
func (ts *transports) close() {
	ts.plain.close()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for key, t := range ts.own {
		ts.drop(key, t)
	}
}

// sum names options. The lengths keep two different ones from reading the same.
func (t TLS) sum() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %d %s%s%s", len(t.Certificate), len(t.Key), t.Certificate, t.Key, t.RootCAs))
}

// apply reads the PEM texts into cfg. Errors do not quote them.
func (t TLS) apply(cfg *tls.Config) error {
	if (t.Certificate == "") != (t.Key == "") {
		return errors.New("tls: certificate and key belong together: give both or neither")
	}
	if t.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(t.Certificate), []byte(t.Key))
		if err != nil {
			return errors.New("tls: certificate and key cannot be read, or do not belong together: give a PEM certificate chain and its unencrypted PEM key")
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if t.RootCAs != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(t.RootCAs)) {
			return errors.New("tls: root_cas holds no certificate that can be read: give PEM certificates")
		}
		cfg.RootCAs = roots
	}
	return nil
}
