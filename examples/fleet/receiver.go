package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/webhook/signature"
)

// listening is what the receivers tell when they are ready.
type listening struct{ Port int }

// arrivals is what the receivers saw.
type arrivals struct {
	// First is when each event was first answered with 2xx, in microseconds since 1970; 0 for never.
	First []int64
	// Doubled counts the further 2xx, by class.
	Doubled [classes]int
	// Requests counts requests, by class.
	Requests [classes]int
	// SignatureFailures counts requests that were not signed as they should be, or not meant for the endpoint that got them.
	SignatureFailures int
}

// progress is how many events were delivered.
type progress struct{ Healthy, All int }

// receivers are all endpoints: one server that behaves as the address that was called should.
type receivers struct {
	plan      plan
	verifiers []*signature.Verifier
	server    *http.Server
	served    chan error
	answering sync.WaitGroup

	mu        sync.Mutex
	seen      arrivals
	delivered progress
}

func startReceiver(ctx context.Context, p plan) (part, any, error) {
	r := &receivers{plan: p, served: make(chan error, 1), seen: arrivals{First: make([]int64, p.events())}}
	for i := range p.Endpoints {
		v, err := signature.NewVerifier(p.secret(i))
		if err != nil {
			return nil, nil, err
		}
		r.verifiers = append(r.verifiers, v)
	}
	if err := checkClosed(ctx); err != nil {
		return nil, nil, err
	}
	var lc net.ListenConfig
	// One socket for all of 127.0.0.0/8 has to be one for every address.
	listener, err := lc.Listen(ctx, "tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, nil, err
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { r.served <- r.server.Serve(loopbackOnly{listener}) }()
	return r, listening{listener.Addr().(*net.TCPAddr).Port}, nil
}

// closedPort is where refusing endpoints are: nobody has listened there for decades, and no system gives it away.
const closedPort = 1

// checkClosed makes sure of that.
func checkClosed(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", closedPort))
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("something listens on port %d of this machine, where the refusing endpoints should be: stop it", closedPort)
	}
	return nil
}

// loopbackOnly drops connections from other machines.
type loopbackOnly struct{ net.Listener }

// Accept implements [net.Listener].
func (l loopbackOnly) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || conn.RemoteAddr().(*net.TCPAddr).IP.IsLoopback() {
			return conn, err
		}
		_ = conn.Close()
	}
}

// ServeHTTP implements [http.Handler].
func (r *receivers) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.answering.Add(1)
	defer r.answering.Done()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender went away
	}
	local := req.Context().Value(http.LocalAddrContextKey).(net.Addr).(*net.TCPAddr)
	at, _ := netip.AddrFromSlice(local.IP)
	i := endpointAt(at)
	n, ok := r.take(i, req.Header, body)
	if !ok {
		http.Error(w, "not for me, or not signed", http.StatusBadRequest)
		return
	}
	r.behave(w, req, i, n)
}

// take counts the request and checks it.
func (r *receivers) take(i int, header http.Header, body []byte) (n int, ok bool) {
	if i < 0 || i >= r.plan.Endpoints {
		return 0, false
	}
	err := r.verifiers[i].Verify(header, body, time.Now())
	n, known := r.plan.eventNumber(header.Get(signature.HeaderID))
	ok = err == nil && known && r.plan.endpoint(n) == i
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Requests[r.plan.class(i)]++
	if !ok {
		r.seen.SignatureFailures++
	}
	return n, ok
}

// behave answers as endpoint i does.
func (r *receivers) behave(w http.ResponseWriter, req *http.Request, i, n int) {
	kind := r.plan.class(i)
	switch {
	case kind == hanging:
		<-req.Context().Done()
	case kind == throttling:
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
	case kind == failing, kind == flapping && down(time.Now()):
		w.WriteHeader(http.StatusInternalServerError)
	default:
		if !pause.For(req.Context(), r.plan.latency(i)) {
			return
		}
		r.accept(kind, n)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (r *receivers) accept(kind class, n int) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen.First[n] != 0 {
		r.seen.Doubled[kind]++
		return
	}
	r.seen.First[n] = now.UnixMicro()
	r.delivered.All++
	if kind == healthy {
		r.delivered.Healthy++
	}
}

func (r *receivers) status() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delivered
}

func (r *receivers) end() (any, error) {
	err := r.server.Close()
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	r.answering.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen, err
}
