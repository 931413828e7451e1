package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/caisson-go/caisson/webhook/signature"
)

const maxBody = 1 << 20 // bytes; a larger delivery is refused unread

// receiver takes deliveries. What it has seen is kept in memory here; keep it in your database, under a unique key, in the transaction
// that does the work.
type receiver struct {
	verifier *signature.Verifier
	mu       sync.Mutex
	seen     map[string]bool
}

func (rec *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)) // the raw bytes: they are what was signed
	if err != nil {
		http.Error(w, "body too large or cut short", http.StatusRequestEntityTooLarge)
		return
	}
	switch err := rec.verifier.Verify(r.Header, body, time.Now()); {
	case errors.Is(err, signature.ErrBadHeaders):
		http.Error(w, "headers missing or malformed", http.StatusBadRequest)
		return
	case err != nil: // too old or too new, or no signature fits
		http.Error(w, "not verified", http.StatusUnauthorized)
		return
	}
	id := r.Header.Get(signature.HeaderID)
	rec.mu.Lock()
	again := rec.seen[id]
	rec.seen[id] = true
	rec.mu.Unlock()
	if again {
		fmt.Println("again", id)
	} else {
		fmt.Printf("received %s, %d bytes\n", id, len(body)) // put it in a queue of yours: do not work before you answer
	}
	w.WriteHeader(http.StatusNoContent)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	// The current secret, and the old one while they rotate, separated by a space.
	verifier, err := signature.NewVerifier(strings.Fields(os.Getenv("WEBHOOK_SECRETS"))...)
	if err != nil {
		return fmt.Errorf("WEBHOOK_SECRETS: %w", err)
	}
	port := "8001"
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s/hooks\n", listener.Addr())
	mux := http.NewServeMux()
	mux.Handle("POST /hooks", &receiver{verifier: verifier, seen: make(map[string]bool)})
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	return server.Serve(listener)
}
