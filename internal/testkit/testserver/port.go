package testserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports are taken from below the range that the kernel gives to outgoing connections. In that range a client that retries a port
// where nothing listens for the moment can connect to itself, and so take the port from the server that wants it back.
const (
	firstPort = 20000
	lastPort  = 31999
)

// freePort returns a port at which nothing listens.
func freePort(t testing.TB) int {
	t.Helper()
	return tryPorts(t, func(port int) error {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", loopback(port))
		if err != nil {
			return err
		}
		return l.Close()
	})
}

// tryPorts returns the first port with which use succeeds.
func tryPorts(t testing.TB, use func(port int) error) int {
	t.Helper()
	for range 100 {
		if port := firstPort + rand.IntN(lastPort-firstPort+1); use(port) == nil {
			return port
		}
	}
	t.Fatalf("found no free port between %d and %d", firstPort, lastPort)
	return 0
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
