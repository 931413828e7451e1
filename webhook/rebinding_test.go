package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// dnsServer answers every A question with the next address of its list, then with the last again and again, with a TTL of 0.
type dnsServer struct {
	conn    net.PacketConn
	mu      sync.Mutex
	answers []netip.Addr
	asked   int
}

func newDNSServer(t *testing.T, answers ...string) *dnsServer {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dnsServer{conn: conn}
	for _, a := range answers {
		s.answers = append(s.answers, netip.MustParseAddr(a))
	}
	var served sync.WaitGroup
	served.Go(s.serve)
	t.Cleanup(func() {
		_ = conn.Close()
		served.Wait()
	})
	return s
}

func (s *dnsServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", s.conn.LocalAddr().String())
	}}
}

func (s *dnsServer) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
			continue
		}
		reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}, Questions: m.Questions}
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
			reply.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: s.next().As4()}}}
		}
		if packed, err := reply.Pack(); err == nil {
			_, _ = s.conn.WriteTo(packed, from)
		}
	}
}

func (s *dnsServer) next() netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.answers[min(s.asked, len(s.answers))-1]
}

func (s *dnsServer) lookups() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// TestRebinding: a name that first leads to a permitted address and then to a forbidden one is stopped when it turns, since the address
// that is dialled is the one that is checked. 127.0.0.2 plays the public address, 127.0.0.1 the inside.
func TestRebinding(t *testing.T) {
	t.Parallel()
	public := listen(t, "127.0.0.2:0")
	_, port, _ := net.SplitHostPort(public.Addr().String())
	inside := listen(t, "127.0.0.1:"+port)
	newReceiverOn := func(l net.Listener, answer func(http.ResponseWriter, *http.Request, int)) {
		rec := &receiver{}
		rec.Server = httptest.NewUnstartedServer(rec.handler(answer))
		_ = rec.Listener.Close()
		rec.Listener = l
		rec.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew && l == inside {
				t.Error("a connection reached the inside")
			}
		}
		rec.Start()
		t.Cleanup(rec.Close)
	}
	newReceiverOn(public, status(http.StatusNoContent))
	newReceiverOn(inside, status(http.StatusOK))
	names := newDNSServer(t, "127.0.0.2", "127.0.0.1")
	guard, err := NewGuard(GuardConfig{
		AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Resolver: names.resolver(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newSender(t, Config{Guard: guard})
	e := endpointAt("e", "http://rebind.example.com:"+port)

	if r := send(t, s, e); r.Status != http.StatusNoContent {
		t.Fatalf("before the turn: %+v", r)
	}
	s.Close() // the kept connection would go on to the permitted address
	r := send(t, s, e)
	if r.Status != 0 || !errors.Is(r.Err, ErrBlocked) || r.Phase != PhaseNotSent {
		t.Errorf("after the turn: %+v", r)
	}
	if n := names.lookups(); n < 2 {
		t.Errorf("%d lookups: the name did not turn", n)
	}
}
