package rabbitmq

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// TestTLS goes through a listener that ends TLS before the broker.
func TestTLS(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	backend := u.Host
	wg.Go(func() { forward(&wg, ln, backend) })
	t.Cleanup(func() {
		_ = ln.Close()
		wg.Wait()
	})
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	u.Scheme, u.Host = "amqps", ln.Addr().String()
	cfg := r.config()
	cfg.URLs, cfg.TLS = []string{u.String()}, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	b := r.open(cfg)
	name := r.queue(b, "tls")
	r.publish(b, name, text("x"))
	r.ack(r.receive(r.subscribe(b, name, 30*time.Second, 1)))

	cfg.TLS = nil // the system's roots do not know the certificate
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, cfg); err == nil {
		t.Error("a certificate that nobody vouches for was accepted")
	}
}

func forward(wg *sync.WaitGroup, ln net.Listener, backend string) {
	for {
		client, err := ln.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", backend)
		if err != nil {
			_ = client.Close()
			continue
		}
		pipe := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			_ = to.Close()
			_ = from.Close()
		}
		wg.Go(func() { pipe(server, client) })
		wg.Go(func() { pipe(client, server) })
	}
}
