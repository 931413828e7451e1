package rabbitmq

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between driver and broker. It can cut links, stop forwarding, and say what a broker with a memory alarm says.
type proxy struct {
	tb      testing.TB
	ln      net.Listener
	backend string
	wg      sync.WaitGroup

	refuse atomic.Bool // take no new links

	mu    sync.Mutex
	links map[*proxyLink]struct{}
}

// proxyLink is one connection through the proxy.
type proxyLink struct {
	client, server net.Conn
	publishes      atomic.Bool  // it is the driver's connection for publishing
	turns          atomic.Int64 // how often the client wrote after it was answered, so waited for an answer
	answered       atomic.Bool

	mu     sync.Mutex
	frozen chan struct{} // not nil while nothing of the client is read; closed to go on
	write  sync.Mutex    // of frames to the client
}

func newProxy(t testing.TB, target string) *proxy {
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{tb: t, ln: ln, backend: u.Host, links: map[*proxyLink]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

// url is the proxy's address, with the credentials and virtual host of target.
func (p *proxy) url(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		p.tb.Fatal(err)
	}
	u.Host = p.ln.Addr().String()
	return u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		if p.refuse.Load() {
			_ = client.Close()
			continue
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.backend)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &proxyLink{client: client, server: server}
		p.mu.Lock()
		p.links[l] = struct{}{}
		p.mu.Unlock()
		p.wg.Go(func() { l.upstream(); l.close() })
		p.wg.Go(func() {
			l.downstream()
			l.close()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.links, l)
		})
	}
}

func (l *proxyLink) close() {
	l.thaw()
	_ = l.client.Close()
	_ = l.server.Close()
}

// upstream forwards what the client sends, unless frozen.
func (l *proxyLink) upstream() {
	buf := make([]byte, 32<<10)
	for {
		if wait := l.frozenNow(); wait != nil {
			<-wait
		}
		n, err := l.client.Read(buf)
		if bytes.Contains(buf[:n], []byte(" publish")) { // the connection's name, in one of the first frames
			l.publishes.Store(true)
		}
		if wait := l.frozenNow(); wait != nil {
			<-wait
		}
		if n > 0 {
			if l.turns.Load() == 0 || l.answered.Swap(false) {
				l.turns.Add(1)
			}
			if _, err := l.server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *proxyLink) frozenNow() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frozen
}

func (l *proxyLink) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen == nil {
		l.frozen = make(chan struct{})
	}
}

func (l *proxyLink) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen != nil {
		close(l.frozen)
		l.frozen = nil
	}
}

// downstream forwards whole frames, so that others can be put between them.
func (l *proxyLink) downstream() {
	head := make([]byte, 7)
	for {
		if _, err := io.ReadFull(l.server, head); err != nil {
			return
		}
		frame := make([]byte, len(head)+int(binary.BigEndian.Uint32(head[3:]))+1)
		copy(frame, head)
		if _, err := io.ReadFull(l.server, frame[len(head):]); err != nil {
			return
		}
		if l.send(frame) != nil {
			return
		}
	}
}

func (l *proxyLink) send(frame []byte) error {
	l.write.Lock()
	defer l.write.Unlock()
	l.answered.Store(true)
	_, err := l.client.Write(frame)
	return err
}

// method sends a method of the connection class to the client.
func (l *proxyLink) method(id uint16, args []byte) {
	payload := binary.BigEndian.AppendUint16(nil, 10)
	payload = append(binary.BigEndian.AppendUint16(payload, id), args...)
	frame := binary.BigEndian.AppendUint32([]byte{1, 0, 0}, uint32(len(payload)))
	_ = l.send(append(append(frame, payload...), 0xCE))
}

func (p *proxy) each(do func(*proxyLink)) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		do(l)
	}
	return len(p.links)
}

// cut drops all links.
func (p *proxy) cut() { p.each((*proxyLink).close) }

// block does what a broker with a memory alarm does to connections that publish.
func (p *proxy) block() {
	p.each(func(l *proxyLink) {
		if l.publishes.Load() {
			l.freeze()
			l.method(60, append([]byte{10}, "low on mem"...))
		}
	})
}

// freezeQuestions stops what the connection for consuming says to the broker, until the returned function is called.
func (p *proxy) freezeQuestions() (thaw func()) {
	each := func(do func(*proxyLink)) {
		p.each(func(l *proxyLink) {
			if !l.publishes.Load() {
				do(l)
			}
		})
	}
	each((*proxyLink).freeze)
	return func() { each((*proxyLink).thaw) }
}

func (p *proxy) unblock() {
	p.each(func(l *proxyLink) {
		if l.publishes.Load() {
			l.thaw()
			l.method(61, nil)
		}
	})
}
