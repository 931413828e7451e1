package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// link keeps one connection for one purpose: it dials, watches, and starts again when the connection is lost, until it is closed.
type link struct {
	cfg       Config
	addresses []address
	purpose   string
	connects  atomic.Int64

	mu      sync.Mutex
	cur     *session      // nil while there is none
	err     error         // why there is none
	fatal   error         // what no waiting can mend; only while it is so of all nodes
	changed chan struct{} // closed and replaced when cur or err changes
}

func newLink(cfg Config, addresses []address, purpose string) *link {
	return &link{cfg: cfg, addresses: addresses, purpose: purpose, err: errDown, changed: make(chan struct{})}
}

// Pauses between attempts to connect double from the first to the longest, each with jitter. A broker that is back after a cut or a
// restart is found within the longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 3 * time.Second
	// steady is how long a connection must have lasted to count as a success.
	steady = time.Second / 2
)

// reconnectPause returns how long to wait after the given number of failures in a row.
func reconnectPause(failures int) time.Duration {
	d := min(firstPause<<min(failures, 16), longestPause)
	return d/2 + rand.N(d/2+1)
}

// tellEvery is how often the log says why there is no connection to a node.
const tellEvery = time.Minute

// run connects until ctx is done.
func (l *link) run(ctx context.Context) {
	var next, failures, hopeless int
	told := map[string]time.Time{} // when the log last said why, by node
	for ctx.Err() == nil {
		at := l.addresses[next%len(l.addresses)]
		s, err := l.connect(ctx, at)
		if err != nil {
			if ctx.Err() == nil && time.Since(told[at.text]) >= tellEvery {
				told[at.text] = time.Now()
				l.cfg.Logger.WarnContext(ctx, "no connection to the broker yet: trying again", "purpose", l.purpose, "node", at.text, "error", err.Error())
			}
			next++
			failures++
			if hopeless++; !permanent(err) {
				hopeless = 0
			}
			l.fail(err, hopeless >= len(l.addresses))
		} else {
			hopeless = 0
			clear(told)
			l.connects.Add(1)
			l.set(s, nil)
			l.cfg.Logger.InfoContext(ctx, "connected to the broker", "purpose", l.purpose, "node", s.at.text)
			select {
			case <-s.done:
			case <-ctx.Done():
				l.set(nil, queue.ErrClosed)
				s.close()
				return
			}
			l.set(nil, s.err)
			l.cfg.Logger.WarnContext(ctx, "connection to the broker lost", "purpose", l.purpose, "node", s.at.text, "error", s.err.Error())
			if failures++; time.Since(s.from) >= steady {
				failures = 0
			}
		}
		pause.For(ctx, reconnectPause(failures))
	}
	l.set(nil, queue.ErrClosed)
}

// connect dials one node.
func (l *link) connect(ctx context.Context, at address) (*session, error) {
	s, err := dial(ctx, l.cfg, at, l.purpose)
	if err != nil {
		return nil, err
	}
	go s.watch() // ends with the connection; close waits for it
	return s, nil
}

func (l *link) set(s *session, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cur, l.err, l.fatal = s, err, nil
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) fail(err error, fatal bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cur, l.err, l.fatal = nil, err, nil
	if fatal {
		l.fatal = err
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// state returns the session, or nil and why there is none, and a channel that is closed when that changes.
func (l *link) state() (*session, error, <-chan struct{}) { //nolint:revive,staticcheck // the channel belongs to both
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != nil && l.cur.lost() {
		return nil, fmt.Errorf("connection to %s lost", l.cur.at.text), l.changed
	}
	return l.cur, l.err, l.changed
}

// waitTimeout is how long a call waits for a connection that is down, or for a broker that takes no messages, before it says so. It also paces
// callers that try again at once.
const waitTimeout = time.Second

// get waits for a session until ctx is done, for at most waitTimeout.
func (l *link) get(ctx context.Context) (*session, error) {
	timer := time.NewTimer(waitTimeout)
	defer timer.Stop()
	for {
		s, err, changed := l.state()
		if s != nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			return nil, fmt.Errorf("%w: %w", errNoConnection, unavailable("connect", err))
		}
	}
}

var errNoConnection = errors.New("no connection")

func (l *link) hopeless() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

// first waits for the first session for as long as ctx lasts, but not once all nodes have refused for good.
func (l *link) first(ctx context.Context) error {
	for {
		s, err, changed := l.state()
		if s != nil {
			return nil
		}
		if fatal := l.hopeless(); fatal != nil {
			return fatal
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", unavailable("no connection", err), ctx.Err())
		}
	}
}
