package testserver

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// session is a proxy's life between two cuts: a listener and the connections that came through it.
type session struct {
	target   string
	faults   *faults
	listener *net.TCPListener
	ctx      context.Context //nolint:containedctx // it is the session's own life
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu    sync.Mutex
	links map[*link]struct{}
}

func listen(addr, target string, f *faults) (*session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &session{target: target, faults: f, listener: l.(*net.TCPListener), ctx: ctx, cancel: cancel, links: map[*link]struct{}{}}
	s.wg.Go(s.accept)
	return s, nil
}

// end resets the connections and returns when every goroutine of the session has.
func (s *session) end() {
	s.cancel()
	_ = s.listener.Close()
	s.wg.Wait()
}

func (s *session) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.links)
}

func (s *session) accept() {
	for {
		client, err := s.listener.AcceptTCP()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.serve(client) })
	}
}

func (s *session) serve(client *net.TCPConn) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	l := &link{client: client, faults: s.faults, cancel: cancel}
	s.track(l, true)
	defer s.track(l, false)
	// A closed connection ends the reads and writes that the context does not reach.
	stop := context.AfterFunc(ctx, func() { l.close(true) })
	defer stop()
	if !s.faults.pass(ctx, time.Time{}) {
		return
	}
	upstream, err := dial(ctx, s.target)
	if err != nil {
		return
	}
	if l.join(upstream) {
		l.run(ctx)
	}
}

func (s *session) track(l *link, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.links[l] = struct{}{}
		return
	}
	l.close(true)
	delete(s.links, l)
}

// link is one client with its connection to the target.
type link struct {
	client *net.TCPConn
	faults *faults
	cancel context.CancelFunc

	mu       sync.Mutex
	upstream *net.TCPConn // nil until joined
	closed   bool
}

// join adds the connection to the target, unless the link was reset meanwhile.
func (l *link) join(upstream *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = upstream.Close()
		return false
	}
	l.upstream = upstream
	return true
}

// close ends both sides: with an RST, so that neither mistakes it for an orderly end, or in order.
func (l *link) close(reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	for _, conn := range []*net.TCPConn{l.client, l.upstream} {
		if conn != nil {
			if reset {
				_ = conn.SetLinger(0)
			}
			_ = conn.Close()
		}
	}
}

// run forwards until both directions have ended. If neither failed, what was written still arrives.
func (l *link) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { l.forward(ctx, l.client, l.upstream) })
	wg.Go(func() { l.forward(ctx, l.upstream, l.client) })
	wg.Wait()
	if ctx.Err() == nil {
		l.close(false)
	}
}

// chunk is what one read returned.
type chunk struct {
	data []byte
	due  time.Time
	last bool
}

// forward copies one direction. Reading goes ahead of writing, so that latency delays each byte and not the flow of them.
func (l *link) forward(ctx context.Context, from, to *net.TCPConn) {
	chunks := make(chan chunk, 64)
	var wg sync.WaitGroup
	wg.Go(func() { l.read(ctx, from, chunks) })
	l.write(ctx, to, chunks)
	wg.Wait()
}

func (l *link) read(ctx context.Context, from *net.TCPConn, chunks chan<- chunk) {
	defer close(chunks)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		c := chunk{data: append([]byte(nil), buf[:n]...), due: l.faults.due(), last: errors.Is(err, io.EOF)}
		if n > 0 || c.last {
			select {
			case chunks <- c:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			if !c.last {
				l.cancel()
			}
			return
		}
	}
}

// write passes chunks on. An end of the stream passes too, and leaves the other direction open.
func (l *link) write(ctx context.Context, to *net.TCPConn, chunks <-chan chunk) {
	for c := range chunks {
		if !l.faults.pass(ctx, c.due) {
			break
		}
		if _, err := to.Write(c.data); err != nil {
			break
		}
		if c.last {
			if err := to.CloseWrite(); err != nil {
				break
			}
			return
		}
	}
	l.cancel()
}
