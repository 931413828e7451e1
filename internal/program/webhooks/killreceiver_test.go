package webhooks

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook/signature"
)

// call is one request as the receiver saw it.
type call struct {
	begun, ended time.Time
	status       int
}

func (c call) took() bool { return c.status < 300 }

// target is one event for one endpoint.
type target struct {
	endpoint string
	event    int
}

// killReceiver is what all endpoints of a round lead to. It outlives all processes, and is the only one who says what was delivered.
type killReceiver struct {
	*httptest.Server
	verifiers map[string]*signature.Verifier // by endpoint
	taken     chan struct{}                  // has one after each success of an endpoint that asks for order

	mu    sync.Mutex
	calls map[target][]call // those that have ended, in the order in which they began
	open  int
	bad   []string // what should never have come
	last  time.Time
}

func newKillReceiver(t *testing.T) *killReceiver {
	r := &killReceiver{verifiers: map[string]*signature.Verifier{}, taken: make(chan struct{}, 1), calls: map[target][]call{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *killReceiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // whoever called was killed before he had said what he wanted
	}
	to := target{endpoint: req.URL.Path[1:]}
	if to.event, err = r.read(to.endpoint, req.Header, body); err != nil {
		r.mu.Lock()
		r.bad = append(r.bad, fmt.Sprintf("%s: %v", to.endpoint, err))
		r.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	n := len(r.calls[to])
	c := call{begun: time.Now(), status: answer(to, n)}
	r.calls[to] = append(r.calls[to], c)
	r.open++
	r.mu.Unlock()

	time.Sleep(time.Duration(1+to.event%5) * time.Millisecond) // what the receiver does with it

	r.mu.Lock()
	r.last = time.Now()
	r.calls[to][n].ended = r.last
	r.open--
	r.mu.Unlock()
	w.WriteHeader(c.status)
	if c.took() && strings.HasPrefix(to.endpoint, "line") {
		select {
		case r.taken <- struct{}{}:
		default:
		}
	}
}

// read returns the number of the event, whose signature, id and body must belong together.
func (r *killReceiver) read(endpoint string, header http.Header, body []byte) (event int, err error) {
	v, ok := r.verifiers[endpoint]
	if !ok {
		return 0, fmt.Errorf("there is no endpoint %q", endpoint)
	}
	if err := v.Verify(header, body, time.Now()); err != nil {
		return 0, err
	}
	id := header.Get(signature.HeaderID)
	if event, err = strconv.Atoi(strings.TrimPrefix(id, "evt_")); err != nil {
		return 0, fmt.Errorf("event %q: %w", id, err)
	}
	if want := numbered(event); want.ID != id || string(want.Body) != string(body) {
		return 0, fmt.Errorf("event %s has the body %q", id, body)
	}
	return event, nil
}

// hopeless are events that an endpoint never takes.
func hopeless(to target) bool { return strings.HasSuffix(to.endpoint, "-all") && to.event%31 == 5 }

// answer is the status of the nth call. What is hopeless is refused for good by one of its endpoints, and fails at the other until its attempts are
// spent, which would hold up a line for long where a broker's shortest delay is a second.
func answer(to target, n int) int {
	switch {
	case hopeless(to) && strings.HasPrefix(to.endpoint, "line"):
		return http.StatusUnprocessableEntity
	case hopeless(to), to.event%47 == 12 && n < 2, to.event%23 == len(to.endpoint)%23 && n < 1:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// quiet is how long no call has ended, 0 while one runs.
func (r *killReceiver) quiet() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open > 0 {
		return 0
	}
	return time.Since(r.last)
}
