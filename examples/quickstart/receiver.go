package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/caisson-go/caisson/webhook/signature"
)

// receiver is one webhook endpoint: it verifies each delivery as a customer would and keeps count.
type receiver struct {
	Name, URL, Secret string
	Port              int

	verifier *signature.Verifier
	server   *http.Server
	served   chan error

	mu         sync.Mutex
	mood       mood
	expected   map[string][sha256.Size]byte // body hashes by webhook-id
	accepted   map[string]int               // 2xx answers by webhook-id
	turnedAway map[string]bool              // by webhook-id: answered with an error, or cut
	requests   int
	refused    int
	corrupted  int
}

// mood is how a receiver behaves.
type mood string

const (
	healthy mood = "healthy"
	flaky   mood = "flaky" // refuses every third request, but no delivery twice
	dead    mood = "dead"  // cuts every connection
)

func startReceiver(ctx context.Context, m mood) (*receiver, error) {
	r := &receiver{
		Name: string(m), Secret: signature.NewSecret().Reveal(), mood: m, served: make(chan error, 1),
		expected: make(map[string][sha256.Size]byte), accepted: make(map[string]int), turnedAway: make(map[string]bool),
	}
	verifier, err := signature.NewVerifier(r.Secret)
	if err != nil {
		return nil, err
	}
	r.verifier = verifier
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("receiver %s: %w", m, err)
	}
	r.Port = listener.Addr().(*net.TCPAddr).Port
	r.URL = fmt.Sprintf("http://127.0.0.1:%d/hook", r.Port)
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	go func() { r.served <- r.server.Serve(listener) }()
	return r, nil
}

func (r *receiver) close() error {
	err := r.server.Close()
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// expect tells the receiver what it is going to get.
func (r *receiver) expect(id string, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected[id] = sha256.Sum256(body)
}

func (r *receiver) repair() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mood = healthy
}

// ServeHTTP implements [http.Handler].
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender went away
	}
	switch r.take(req.Header, body) {
	case http.StatusOK:
		w.WriteHeader(http.StatusNoContent)
	case 0:
		panic(http.ErrAbortHandler) // cuts the connection
	default:
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}
}

// take decides on one delivery: http.StatusOK to accept it, 0 to cut the connection, else an error.
func (r *receiver) take(header http.Header, body []byte) int {
	id := header.Get(signature.HeaderID)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if want, known := r.expected[id]; !known || want != sha256.Sum256(body) || r.verifier.Verify(header, body, time.Now()) != nil {
		r.corrupted++
	}
	answer := http.StatusOK
	switch {
	case r.mood == dead:
		answer = 0
	case r.mood == flaky && r.requests%3 == 0 && !r.turnedAway[id]:
		answer = http.StatusServiceUnavailable
	}
	if answer != http.StatusOK {
		r.turnedAway[id] = true
		r.refused++
		return answer
	}
	r.accepted[id]++
	return answer
}

// count is what a receiver has seen.
type count struct{ expected, delivered, refused, duplicates, corrupted int }

func (r *receiver) count() count {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := count{expected: len(r.expected), delivered: len(r.accepted), refused: r.refused, corrupted: r.corrupted}
	for _, n := range r.accepted {
		c.duplicates += n - 1
	}
	return c
}
