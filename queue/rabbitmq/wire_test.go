package rabbitmq

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"
)

// countedConn counts writes, and fails them once broken.
type countedConn struct {
	net.Conn
	got    bytes.Buffer
	writes int
	broken bool
	closed bool
}

func (c *countedConn) Write(b []byte) (int, error) {
	if c.broken {
		return 0, errors.New("broken")
	}
	c.writes++
	return c.got.Write(b)
}

func (c *countedConn) SetWriteDeadline(time.Time) error { return nil }

func (c *countedConn) Close() error {
	c.closed = true
	return nil
}

// TestHeldWritesGoTogether: between hold and release small writes go as one, in order; large ones do not wait for the release.
func TestHeldWritesGoTogether(t *testing.T) {
	t.Parallel()
	conn := &countedConn{}
	w := newWire(conn, time.Minute)
	write := func(text string) {
		t.Helper()
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	write("a")
	w.hold()
	write("b")
	w.hold()
	write("c")
	w.release()
	write("d")
	w.release()
	write("e")
	if got := conn.got.String(); got != "abcde" || conn.writes != 4 {
		t.Errorf("wrote %q in %d writes, want abcde in 4", got, conn.writes)
	}
	w.hold()
	write(string(make([]byte, heldBytes)))
	if conn.writes != 5 {
		t.Errorf("%d bytes are still held back", heldBytes)
	}
	write("f")
	conn.broken = true
	w.release()
	if !conn.closed {
		t.Error("the connection lives on although a write has failed")
	}
}
