package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/webhook/signature"
)

// reply is how an endpoint answers one request.
type reply struct {
	status int
	after  time.Duration // before it answers
	hang   bool          // never answers
	retry  int           // Retry-After in seconds; 0 for none
}

// ok is the answer of a healthy endpoint.
var ok = reply{status: http.StatusNoContent, after: 5 * time.Millisecond}

// endpoint is one receiver of webhooks. It keeps count of what it got.
type endpoint struct {
	address string
	secret  signature.Secret
	behave  func(at time.Duration) reply // at is the time since begin

	answering sync.WaitGroup

	mu       sync.Mutex
	begin    time.Time
	server   *http.Server
	served   chan error
	closed   bool                     // nobody listens
	arrived  []time.Duration          // every request, since begin
	statuses map[int]int              // answers by status; 0 for none
	accepted map[string]time.Duration // when each webhook-id was first answered with 2xx, since begin
	doubled  int
	wrong    int // requests with a signature that is none
}

func newEndpoint(behave func(time.Duration) reply) *endpoint {
	return &endpoint{secret: signature.NewSecret(), behave: behave, statuses: map[int]int{}, accepted: map[string]time.Duration{}}
}

// listen opens the endpoint, at the address that it had before if it had one.
func (e *endpoint) listen(ctx context.Context) error {
	at := e.address
	if at == "" {
		at = "127.30.0.1:0" // no connection of anybody begins there, so that a port that was closed is still free later
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	server, served := &http.Server{Handler: e, ReadHeaderTimeout: 5 * time.Second}, make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.address, e.server, e.served, e.closed = listener.Addr().String(), server, served, false
	return nil
}

// close ends listening, cuts every connection and waits until nothing is answered any more.
func (e *endpoint) close() error {
	e.mu.Lock()
	server, served, closed := e.server, e.served, e.closed
	e.closed = true
	e.mu.Unlock()
	if closed || server == nil {
		return nil
	}
	err := server.Close()
	e.answering.Wait()
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// start sets the time from which behaviour is reckoned.
func (e *endpoint) start(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begin = at
}

// ServeHTTP implements [http.Handler].
func (e *endpoint) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	e.answering.Add(1)
	defer e.answering.Done()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender went away
	}
	r := e.take(req.Header, body)
	if r.hang {
		<-req.Context().Done()
		return
	}
	if r.after > 0 {
		pause.For(req.Context(), r.after)
	}
	if req.Context().Err() != nil {
		return // it waits no longer
	}
	if r.status/100 == 2 {
		e.accept(req.Header.Get(signature.HeaderID))
	}
	if r.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(r.retry))
	}
	w.WriteHeader(r.status)
}

// take counts a request, checks its signature and says how it is answered.
func (e *endpoint) take(header http.Header, body []byte) reply {
	verifier, err := signature.NewVerifier(e.secret.Reveal())
	if err == nil {
		err = verifier.Verify(header, body, time.Now())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	at := time.Since(e.begin)
	r := e.behave(at)
	if err != nil {
		e.wrong++
		r = reply{status: http.StatusBadRequest}
	}
	e.arrived = append(e.arrived, at)
	e.statuses[r.status]++
	return r
}

func (e *endpoint) accept(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.accepted[id]; known {
		e.doubled++
		return
	}
	e.accepted[id] = time.Since(e.begin)
}
