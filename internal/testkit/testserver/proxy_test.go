package testserver

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testTimeout bounds what takes milliseconds on a quiet machine.
const testTimeout = 2 * time.Minute

func TestProxyForwards(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, listenEcho(t))
	conn := connect(t, p)
	big := strings.Repeat("0123456789abcdef", 1<<16)
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, big)
		done <- errors.Join(err, conn.CloseWrite())
	}()
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != big {
		t.Fatalf("got %d bytes of %d and %v", len(got), len(big), err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestProxyCut(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, listenEcho(t))
	conn := connect(t, p)
	echo(t, conn, "before")
	p.Cut()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read after the cut: %v, want a reset", err)
	}
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Addr()); err == nil {
		conn.Close()
		t.Fatal("connected while cut")
	}
	if n := p.Connections(); n != 0 {
		t.Fatalf("%d connections after the cut", n)
	}
	p.Cut() // once more changes nothing
	p.Restore()
	p.Restore()
	echo(t, connect(t, p), "after")
	p.Drop()
	echo(t, connect(t, p), "after a drop")
}

func TestProxyBlackhole(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, listenEcho(t))
	conn := connect(t, p)
	echo(t, conn, "before")
	p.Blackhole(true)
	p.Blackhole(true)
	late := connect(t, p)
	for _, c := range []net.Conn{conn, late} {
		if _, err := io.WriteString(c, "lost?\n"); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var netErr net.Error
		if _, err := c.Read(make([]byte, 1)); !errors.As(err, &netErr) || !netErr.Timeout() {
			t.Fatalf("read through a blackhole: %v, want silence", err)
		}
	}
	p.Blackhole(false)
	for _, c := range []net.Conn{conn, late} {
		if err := c.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "lost?\n" {
			t.Fatalf("after the blackhole: %q, %v", line, err)
		}
	}
}

// TestProxyCutUnderBlackhole ends connections that are stuck, with data under way.
func TestProxyCutUnderBlackhole(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, listenEcho(t))
	conn := connect(t, p)
	echo(t, conn, "before")
	p.Blackhole(true)
	if _, err := io.WriteString(conn, "stuck\n"); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read after the cut: %v, want a reset", err)
	}
}

func TestProxyLatency(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, listenEcho(t))
	conn := connect(t, p)
	const delay = 50 * time.Millisecond
	p.Latency(delay)
	begun := time.Now()
	echo(t, conn, "slow")
	if took := time.Since(begun); took < 2*delay {
		t.Fatalf("there and back took %v, want at least %v", took, 2*delay)
	}
	p.Latency(0)
	echo(t, conn, "fast")
}

func TestProxyWithoutTarget(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, freeAddr(t))
	conn, err := dial(t.Context(), p.Addr())
	if err != nil {
		return // reset before the dial was through
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read from a proxy without a target: %v, want a reset", err)
	}
}

func connect(t *testing.T, p *Proxy) *net.TCPConn {
	t.Helper()
	conn, err := dial(t.Context(), p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func echo(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text+"\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(conn).ReadString('\n'); err != nil || got != text+"\n" {
		t.Fatalf("sent %q, got %q and %v", text, got, err)
	}
}

// listenEcho sends back what it is sent.
func listenEcho(t *testing.T) string {
	t.Helper()
	return listenFor(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
}
