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

// dnsServer is a real name server on this machine.
type dnsServer struct {
	conn   net.PacketConn
	answer func(dnsmessage.Question) []dnsmessage.Resource
	mu     sync.Mutex
	asked  int // A questions
}

// newDNSServer answers every A question with the next address of its list, then with the last again and again, with a TTL of 0.
func newDNSServer(t *testing.T, answers ...string) *dnsServer {
	t.Helper()
	next := 0 // its server answers one question at a time
	return serveNames(t, func(q dnsmessage.Question) []dnsmessage.Resource {
		if q.Type != dnsmessage.TypeA {
			return nil
		}
		answer := answers[min(next, len(answers)-1)]
		next++
		return []dnsmessage.Resource{record(q.Name, netip.MustParseAddr(answer))}
	})
}

// record is an A or AAAA record.
func record(name dnsmessage.Name, ip netip.Addr) dnsmessage.Resource {
	if ip.Is4() {
		return dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: ip.As4()},
		}
	}
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: name, Type: dnsmessage.TypeAAAA, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()},
	}
}

func serveNames(t *testing.T, answer func(dnsmessage.Question) []dnsmessage.Resource) *dnsServer {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dnsServer{conn: conn, answer: answer}
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
		if m.Questions[0].Type == dnsmessage.TypeA {
			s.mu.Lock()
			s.asked++
			s.mu.Unlock()
		}
		reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}, Questions: m.Questions}
		reply.Answers = s.answer(m.Questions[0])
		if packed, err := reply.Pack(); err == nil {
			_, _ = s.conn.WriteTo(packed, from)
		}
	}
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
