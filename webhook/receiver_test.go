package webhook

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// received is one request as a receiver saw it.
type received struct {
	proto, method, path string
	header              http.Header
	body                []byte
}

// receiver is a real HTTP server that remembers what it was sent. answer gets the number of the request, from 0.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	seen []received
}

func newReceiver(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, n int)) *receiver {
	t.Helper()
	rec := &receiver{}
	rec.Server = httptest.NewServer(rec.handler(answer))
	t.Cleanup(rec.Close)
	return rec
}

func (rec *receiver) handler(answer func(w http.ResponseWriter, r *http.Request, n int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rec.mu.Lock()
		n := len(rec.seen)
		rec.seen = append(rec.seen, received{r.Proto, r.Method, r.URL.RequestURI(), r.Header.Clone(), body})
		rec.mu.Unlock()
		answer(w, r, n)
	})
}

func (rec *receiver) requests() []received {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.Clone(rec.seen)
}

// status answers every request with the same code.
func status(code int) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(code) }
}

// act is what a rawServer does with one request.
type act func(c net.Conn, done <-chan struct{}) (goOn bool)

func answer(text string) act {
	return func(c net.Conn, _ <-chan struct{}) bool {
		_, err := io.WriteString(c, text)
		return err == nil
	}
}

// cut says something, then hangs up.
func cut(text string) act {
	return func(c net.Conn, done <-chan struct{}) bool {
		answer(text)(c, done)
		return false
	}
}

func hangUp(net.Conn, <-chan struct{}) bool { return false }

// silence says nothing until the client or the test is gone.
func silence(c net.Conn, done <-chan struct{}) bool {
	gone := make(chan struct{})
	go func() {
		_, _ = c.Read(make([]byte, 1))
		close(gone)
	}()
	select {
	case <-done:
		_ = c.Close()
		<-gone
	case <-gone:
	}
	return false
}

const answerOK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// rawServer speaks HTTP by hand: the n-th request, over all connections, is met by the n-th act.
type rawServer struct {
	listener net.Listener
	url      string
	mu       sync.Mutex
	seen     []*http.Request
}

func newRawServer(t testing.TB, acts ...act) *rawServer {
	t.Helper()
	listener := listen(t, "127.0.0.1:0")
	s := &rawServer{listener: listener, url: "http://" + listener.Addr().String()}
	done := make(chan struct{})
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { s.serve(c, done, acts) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		close(done)
		conns.Wait()
	})
	return s
}

func (s *rawServer) serve(c net.Conn, done <-chan struct{}, acts []act) {
	finished := make(chan struct{})
	defer close(finished)
	defer c.Close()
	go func() {
		select {
		case <-done:
			_ = c.Close() // ends the read below
		case <-finished:
		}
	}()
	reader := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		s.mu.Lock()
		n := len(s.seen)
		s.seen = append(s.seen, r)
		s.mu.Unlock()
		if n >= len(acts) || !acts[n](c, done) {
			return
		}
	}
}

func (s *rawServer) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}
