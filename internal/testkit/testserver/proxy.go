package testserver

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections to one target and fails on demand. It keeps its address for as long as the test runs.
//
// Its methods are safe to call from any goroutine, but for [Proxy.Restore], which may fail the test.
type Proxy struct {
	t      testing.TB
	target string
	addr   string
	faults *faults

	mu      sync.Mutex
	session *session // nil while cut
}

// StartProxy starts a proxy in front of target, a host with a port, and ends it with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, target: target, faults: newFaults()}
	port := tryPorts(t, func(port int) (err error) { // which others look for at the same time
		p.session, err = listen(loopback(port), target, p.faults)
		return err
	})
	p.addr = loopback(port)
	t.Cleanup(p.Cut)
	return p
}

// Addr returns the host and port to connect to in place of the target.
func (p *Proxy) Addr() string { return p.addr }

// URL returns raw, an AMQP URL or an endpoint, with the proxy's address in place of the host.
func (p *Proxy) URL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		// The text of a URL that does not parse may hold a password.
		p.t.Errorf("Proxy.URL was given something else than a URL")
		return ""
	}
	u.Host = p.addr
	return u.String()
}

// Cut resets every connection and refuses new ones until [Proxy.Restore]. It returns when all of that is done.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		p.session.end()
		p.session = nil
	}
}

// Drop resets every connection, and lets clients connect again at once.
func (p *Proxy) Drop() {
	p.Cut()
	p.Restore()
}

// Restore ends a cut.
func (p *Proxy) Restore() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		return
	}
	s, err := listen(p.addr, p.target, p.faults)
	if err != nil {
		p.t.Fatalf("the proxy cannot listen on %s again: %v", p.addr, err)
	}
	p.session = s
}

// Blackhole makes the network between client and target swallow what is sent, in both directions, as a firewall or a pulled plug
// does: connections stay open, nothing arrives, not even that the other side has closed. New connections seem to open, and stay
// silent. Once it is off again, what was sent arrives late, as TCP would deliver it; to have the connections dead for good, [Proxy.Cut].
func (p *Proxy) Blackhole(on bool) { p.faults.blackhole(on) }

// Latency delays everything by d in each direction, without limiting how much is under way. Zero ends it.
func (p *Proxy) Latency(d time.Duration) { p.faults.delay(d) }

// Connections returns how many clients are connected.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		return 0
	}
	return p.session.count()
}

// faults is what goes wrong at present.
type faults struct {
	mu      sync.Mutex
	open    chan struct{} // closed while data may pass
	latency time.Duration
}

func newFaults() *faults {
	f := &faults{open: make(chan struct{})}
	close(f.open)
	return f
}

func (f *faults) blackhole(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.open:
		if on {
			f.open = make(chan struct{})
		}
	default:
		if !on {
			close(f.open)
		}
	}
}

func (f *faults) delay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latency = d
}

// due returns when what was read now may be passed on.
func (f *faults) due() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Add(f.latency)
}

// pass waits until nothing is in the way, or until ctx ends and reports false.
func (f *faults) pass(ctx context.Context, due time.Time) bool {
	if wait := time.Until(due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	f.mu.Lock()
	open := f.open
	f.mu.Unlock()
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

// dialTarget bounds how long the target may take to accept.
const dialTarget = 10 * time.Second

func dial(ctx context.Context, target string) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTarget)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}
