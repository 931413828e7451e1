package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook/signature"
)

var event = Delivery{ID: "e1", Body: []byte(`{"a":1}`)}

func send(t *testing.T, s *Sender, e Endpoint) Response {
	t.Helper()
	r, err := s.Send(t.Context(), e, event)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestResend: a kept connection that has died is no fault of the receiver, so the same bytes go out once more on a fresh one. Nothing
// else is sent twice.
func TestResend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		acts   []act // the first request always goes well, so that its connection is kept
		status int
		phase  Phase
		resent bool
		sent   int
	}{
		{"dead connection", []act{answer(answerOK), hangUp, answer(answerOK)}, 200, PhaseAnswered, true, 3},
		{"dead twice", []act{answer(answerOK), hangUp, hangUp, answer(answerOK)}, 0, PhaseUnknown, true, 3},
		{"half an answer", []act{answer(answerOK), cut("HTTP/1.1 2"), answer(answerOK)}, 0, PhaseAnswered, false, 2},
		{"no HTTP", []act{answer(answerOK), cut("-ERR unknown command\r\n\r\n"), answer(answerOK)}, 0, PhaseAnswered, false, 2},
		{"silence", []act{answer(answerOK), silence, answer(answerOK)}, 0, PhaseUnknown, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := newRawServer(t, append(c.acts, hangUp)...)
			s := newSender(t, Config{Timeouts: Timeouts{Header: 5 * time.Second}})
			e := endpointAt("e", server.url)
			if r := send(t, s, e); r.Status != 200 || r.Resent {
				t.Fatalf("first: %+v", r)
			}
			r := send(t, s, e)
			if r.Status != c.status || r.Phase != c.phase || r.Resent != c.resent {
				t.Errorf("got %+v, want %+v", r, c)
			}
			seen := server.requests()
			if len(seen) != c.sent {
				t.Fatalf("%d requests, want %d", len(seen), c.sent)
			}
			if c.resent {
				for _, name := range []string{signature.HeaderID, signature.HeaderTimestamp, signature.HeaderSignature} {
					if a, b := seen[1].Header.Get(name), seen[2].Header.Get(name); a != b || a == "" {
						t.Errorf("%s changed in the resend: %q, %q", name, a, b)
					}
				}
			}
		})
	}
}

// TestResendThatIsNotSent: the first try may have run, so the attempt as a whole may have, although the resend found nobody.
func TestResendThatIsNotSent(t *testing.T) {
	t.Parallel()
	var server *rawServer
	closeAll := func(net.Conn, <-chan struct{}) bool {
		_ = server.listener.Close()
		return false
	}
	server = newRawServer(t, answer(answerOK), closeAll)
	s, e := newSender(t, Config{}), endpointAt("e", server.url)
	if r := send(t, s, e); r.Status != 200 {
		t.Fatalf("first: %+v", r)
	}
	if r := send(t, s, e); !r.Resent || r.Phase != PhaseUnknown || !errors.Is(r.Err, syscall.ECONNREFUSED) {
		t.Errorf("%+v", r)
	}
}

// TestNoResendOnAFreshConnection: a receiver that hangs up on a new connection may have acted, and is not asked again in this attempt.
func TestNoResendOnAFreshConnection(t *testing.T) {
	t.Parallel()
	server := newRawServer(t, hangUp, answer(answerOK))
	r := send(t, newSender(t, Config{}), endpointAt("e", server.url))
	if r.Status != 0 || r.Resent || r.Phase != PhaseUnknown || len(server.requests()) != 1 {
		t.Errorf("%+v after %d requests", r, len(server.requests()))
	}
}

func TestNotSent(t *testing.T) {
	t.Parallel()
	listener := listen(t, "127.0.0.1:0")
	url := "http://" + listener.Addr().String()
	_ = listener.Close()
	r := send(t, newSender(t, Config{}), endpointAt("e", url))
	if r.Phase != PhaseNotSent || !errors.Is(r.Err, syscall.ECONNREFUSED) {
		t.Errorf("%+v", r)
	}
}

// TestHeadersBounded: neither an endless header nor endless interim responses are read to the end.
func TestHeadersBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"headers": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Fill: "+strings.Repeat("a", 1000)+"\r\n", 200) + "\r\n",
		"interim": strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10_000),
	} {
		server := newRawServer(t, answer(text))
		r := send(t, newSender(t, Config{}), endpointAt("e", server.url))
		if r.Status != 0 || r.Err == nil || r.Phase != PhaseAnswered {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestStatusThatIsNone: three digits that are no status are an answer that cannot be read, and count as one.
func TestStatusThatIsNone(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"000", "001", "099"} {
		server := newRawServer(t, answer("HTTP/1.1 "+code+" Odd\r\nContent-Length: 2\r\n\r\nok"))
		e := endpointAt("e", server.url)
		r := send(t, newSender(t, Config{}), e)
		if r.Status != 0 || r.Err == nil || r.Phase != PhaseAnswered || r.Resent {
			t.Errorf("%s: %+v", code, r)
		}
		err := judge(r, e, time.Now())
		if v := verdictOf(t, err); v != outage || !strings.Contains(err.Error(), "unreadable answer: status "+code) {
			t.Errorf("%s: %+v, %v", code, v, err)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	rec := &receiver{}
	rec.Server = httptest.NewUnstartedServer(rec.handler(status(http.StatusNoContent)))
	rec.EnableHTTP2 = true // offered, and not taken
	rec.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	rec.StartTLS()
	t.Cleanup(rec.Close)
	roots := x509.NewCertPool()
	roots.AddCert(rec.Certificate())
	e := endpointAt("e", rec.URL)
	e.AllowHTTP = false

	if r := send(t, newSender(t, Config{RootCAs: roots}), e); r.Status != http.StatusNoContent {
		t.Errorf("%+v", r)
	}
	if r := send(t, newSender(t, Config{}), e); r.Status != 0 || r.Phase != PhaseNotSent {
		t.Errorf("an unknown authority was trusted: %+v", r)
	}
	if seen := rec.requests(); len(seen) != 1 || seen[0].proto != "HTTP/1.1" {
		t.Errorf("%d requests arrived, want 1 over HTTP/1.1: %+v", len(seen), seen)
	}
}

func TestOldTLSRefused(t *testing.T) {
	t.Parallel()
	rec := &receiver{}
	rec.Server = httptest.NewUnstartedServer(rec.handler(status(http.StatusOK)))
	rec.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11} //nolint:gosec // what is to be refused
	rec.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	rec.StartTLS()
	t.Cleanup(rec.Close)
	roots := x509.NewCertPool()
	roots.AddCert(rec.Certificate())
	if r := send(t, newSender(t, Config{RootCAs: roots}), endpointAt("e", rec.URL)); r.Status != 0 || r.Phase != PhaseNotSent {
		t.Errorf("%+v", r)
	}
}

// TestConnectionsAreKept: small responses leave the connection for the next delivery, large ones do not.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size, conns int
	}{{0, 1}, {maxExcerpt, 1}, {maxRead - 1, 1}, {maxRead + 100_000, 3}} {
		var conns int
		rec := &receiver{}
		rec.Server = httptest.NewUnstartedServer(rec.handler(func(w http.ResponseWriter, _ *http.Request, _ int) {
			_, _ = w.Write(make([]byte, c.size)) // a cut connection is what is asked for
		}))
		rec.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns++ // called by the accept loop only
			}
		}
		rec.Start()
		s := newSender(t, Config{})
		for range 3 {
			r := send(t, s, endpointAt("e", rec.URL))
			if r.Status != 200 || len(r.Excerpt) != min(c.size, maxExcerpt) {
				t.Errorf("size %d: %d, %d bytes kept", c.size, r.Status, len(r.Excerpt))
			}
		}
		rec.Close()
		if conns != c.conns {
			t.Errorf("size %d: %d connections, want %d", c.size, conns, c.conns)
		}
	}
}
