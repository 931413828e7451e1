package rabbitmq

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

const (
	dialTimeout = 5 * time.Second
	// rpcTimeout is how long the broker may take for one answer; after it the connection is dropped. Declaring on a busy cluster takes
	// seconds.
	rpcTimeout = 15 * time.Second
	// closeTimeout is how long a broker that has stopped reading may hold up the close of a connection.
	closeTimeout = 2 * time.Second
	// mostWrite is how long one write may hang.
	mostWrite = 10 * time.Second
)

// session is one connection, from its dial to its loss. Nothing of one session is used in another.
type session struct {
	conn *amqp.Connection
	wire *wire
	at   address
	from time.Time

	closes <-chan *amqp.Error
	blocks <-chan amqp.Blocking

	closing sync.Once
	done    chan struct{} // closed when the connection is lost or closed
	err     error         // why; to be read after done

	isBlocked atomic.Bool
	mu        sync.Mutex
	blocked   string        // why the broker takes no publications; empty while it does
	changed   chan struct{} // closed and replaced when blocked changes
}

// dial connects to one node. The handshake is bounded by ctx and dialTimeout.
func dial(ctx context.Context, cfg Config, at address, purpose string) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var w *wire
	stop := func() bool { return true }
	props := amqp.NewConnectionProperties()
	props.SetClientConnectionName(cfg.Name + " " + purpose)
	ac := amqp.Config{
		Heartbeat:  cfg.Heartbeat,
		Properties: props,
		Dial: func(network, addr string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			w = newWire(conn, mostWrite)
			stop = context.AfterFunc(ctx, w.kill)
			deadline, _ := ctx.Deadline()
			return w, w.SetDeadline(deadline) // the library lifts it after the handshake
		},
	}
	if cfg.TLS != nil {
		ac.TLSClientConfig = cfg.TLS.Clone() // the library writes the server's name into it
	}
	conn, err := amqp.DialConfig(at.url, ac)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if w != nil {
			w.kill()
		}
		return nil, fmt.Errorf("connect to %s: %w", at.text, at.redact(err))
	}
	return newSession(conn, w, at), nil
}

func newSession(conn *amqp.Connection, w *wire, at address) *session {
	return &session{
		conn: conn, wire: w, at: at, from: time.Now(),
		done: make(chan struct{}), changed: make(chan struct{}),
		closes: conn.NotifyClose(make(chan *amqp.Error, 1)),
		blocks: conn.NotifyBlocked(make(chan amqp.Blocking, 8)),
	}
}

// watch follows the connection until it is gone.
func (s *session) watch() {
	defer s.ended()
	blocks := s.blocks
	for {
		select {
		case err := <-s.closes:
			s.err = fmt.Errorf("connection to %s closed", s.at.text)
			if err != nil {
				s.err = fmt.Errorf("connection to %s lost: %w", s.at.text, err)
			}
			return
		case b, ok := <-blocks:
			if !ok {
				blocks = nil
				continue
			}
			s.setBlocked(b)
		}
	}
}

// ended tells all who wait for anything of the session.
func (s *session) ended() {
	s.wire.kill()
	close(s.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *session) setBlocked(b amqp.Blocking) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isBlocked.Store(b.Active)
	s.blocked = ""
	if b.Active {
		s.blocked = "the broker takes no messages: " + b.Reason
		if b.Reason == "" {
			s.blocked += "it gives no reason"
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// blocking returns why the broker takes no publications, or "", and a channel that is closed when that changes.
func (s *session) blocking() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked, s.changed
}

// lost reports whether the connection is gone.
func (s *session) lost() bool {
	select {
	case <-s.done:
		return true
	default:
		return s.conn.IsClosed()
	}
}

// call runs do, which asks the broker one thing. The library's calls wait for ever: a broker that does not answer has its connection
// dropped, which ends them. do runs in the caller's goroutine.
func (s *session) call(do func() error) error {
	stop := time.AfterFunc(rpcTimeout, s.wire.kill)
	defer stop.Stop()
	return do()
}

// close ends the connection, within closeTimeout even if the broker has stopped reading, and waits until it is gone.
func (s *session) close() {
	s.closing.Do(func() {
		if s.conn.CloseDeadline(time.Now().Add(closeTimeout)) != nil {
			s.wire.kill() // not closed in order: nothing is lost by it, since everything that matters was confirmed
		}
	})
	<-s.done
}

// errDown is what there is to say before the first connection.
var errDown = fmt.Errorf("not connected yet: %w", queue.ErrUnavailable)
