package rabbitmq

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wire is the socket below a connection. The client library writes without a deadline; wire sets one for each write, so that a peer that
// has stopped reading makes writes fail instead of hang.
type wire struct {
	net.Conn
	timeout time.Duration

	mu    sync.Mutex
	limit time.Time // what the library asked for; zero for none
	set   time.Time // the deadline that the socket has

	out  sync.Mutex // guards what follows
	held int        // how many writers have more to come
	buf  []byte     // what they have written so far

	dead atomic.Bool
}

// heldBytes is how much is held back at most.
const heldBytes = 16 << 10

func newWire(conn net.Conn, timeout time.Duration) *wire {
	return &wire{Conn: conn, timeout: timeout}
}

// Write implements [net.Conn].
func (w *wire) Write(b []byte) (int, error) {
	w.out.Lock()
	defer w.out.Unlock()
	if w.held == 0 {
		return w.writeLocked(b)
	}
	if w.buf = append(w.buf, b...); len(w.buf) < heldBytes {
		return len(b), nil
	}
	return len(b), w.flushLocked()
}

func (w *wire) writeLocked(b []byte) (int, error) {
	if err := w.arm(); err != nil {
		return 0, err
	}
	return w.Conn.Write(b)
}

func (w *wire) flushLocked() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.writeLocked(w.buf)
	w.buf = w.buf[:0]
	return err
}

// hold says that more is going to be written soon. The library writes each frame by itself, which costs a system call here and one at the
// broker; held back, many go as one. Whoever holds must not wait for anything before he calls release.
func (w *wire) hold() {
	w.out.Lock()
	defer w.out.Unlock()
	w.held++
}

// release ends a hold and writes what was held back. Where that fails the connection is dropped.
func (w *wire) release() {
	w.out.Lock()
	defer w.out.Unlock()
	w.held--
	if w.flushLocked() != nil {
		w.kill()
	}
}

// arm moves the deadline, though not for each write: moving it costs as much as a small write.
func (w *wire) arm() error {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	want := now.Add(w.timeout)
	if !w.limit.IsZero() && w.limit.Before(want) {
		want = w.limit
	}
	if ahead := want.Sub(w.set); ahead >= 0 && ahead < w.timeout/8 {
		return nil
	}
	w.set = want
	return w.Conn.SetWriteDeadline(want)
}

// SetDeadline implements [net.Conn]. It holds for a write that hangs already.
func (w *wire) SetDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.set = t, t
	return w.Conn.SetDeadline(t)
}

// SetWriteDeadline implements [net.Conn].
func (w *wire) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.set = t, t
	return w.Conn.SetWriteDeadline(t)
}

// kill drops the connection: whatever waits for it fails.
func (w *wire) kill() {
	if w.dead.CompareAndSwap(false, true) {
		_ = w.Close() // its users see the error
	}
}
