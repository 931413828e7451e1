package journal_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/internal/testkit/journaltest"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal/sqlite"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// rig is a broker with claims, dead letters and a journal in memory, receivers, and all that publishes and works on them.
type rig struct {
	t         *testing.T
	file      *sqlitefile.File
	queue     string
	broker    *queuetest.FaultBroker
	claims    *claimsqlite.Store
	dead      *dlqsqlite.Store
	journal   journaltest.Store
	client    *worker.Client
	endpoints []webhook.Endpoint
	seen      *receiver
	settled   chan struct{}
	closers   []func()
}

// receiver is what all endpoints of a rig lead to: a real HTTP server, whose answers are chosen by endpoint and event.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(endpoint, event string) int
	calls  map[string][]string // by endpoint: the events in the order in which they came
	taken  map[string][]string // by endpoint: those that were answered with a success, each time
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{calls: map[string][]string{}, taken: map[string][]string{}, answer: func(string, string) int { return http.StatusOK }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		endpoint, event := req.URL.Path[1:], req.Header.Get(signature.HeaderID)
		r.mu.Lock()
		code := r.answer(endpoint, event)
		r.calls[endpoint] = append(r.calls[endpoint], event)
		if code < 300 {
			r.taken[endpoint] = append(r.taken[endpoint], event)
		}
		r.mu.Unlock()
		w.WriteHeader(code)
	}))
	return r
}

// answers sets how the receiver answers from now on.
func (r *receiver) answers(answer func(endpoint, event string) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// took returns the events that an endpoint took, each time.
func (r *receiver) took(endpoint string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.taken[endpoint]...)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := newBareRig(t)
	r.seen = newReceiver(t)
	r.closers = append(r.closers, r.seen.Close)
	return r
}

// newBareRig has no receiver, so that it works in synctest bubbles.
func newBareRig(t *testing.T) *rig {
	t.Helper()
	broker, err := embedded.Open(context.Background(), embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.CreateQueue(context.Background(), worker.DefaultQueue); err != nil {
		t.Fatal(err)
	}
	return newRigOn(t, broker, broker.Path(), worker.DefaultQueue)
}

// newRigOn has its jobs in a queue of broker, which it closes, and all else in the file at path.
func newRigOn(t *testing.T, broker queue.Broker, path, name string) *rig {
	t.Helper()
	ctx := context.Background()
	file, err := sqlitefile.Open(ctx, sqlitefile.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		t: t, file: file, queue: name, broker: queuetest.NewFaultBroker(broker, nil), settled: make(chan struct{}, 1),
		seen: &receiver{Server: &httptest.Server{URL: "http://127.0.0.1:1"}},
	}
	r.closers = append(r.closers, func() { _ = broker.Close() }, func() { _ = file.Close() })
	t.Cleanup(r.close)
	if r.claims, err = claimsqlite.Open(ctx, claimsqlite.Config{Path: file.Path()}); err != nil {
		t.Fatal(err)
	}
	r.closers = append(r.closers, func() { _ = r.claims.Close() })
	if r.dead, err = dlqsqlite.Open(ctx, dlqsqlite.Config{Path: file.Path()}); err != nil {
		t.Fatal(err)
	}
	r.closers = append(r.closers, func() { _ = r.dead.Close() })
	events, err := sqlite.Open(ctx, sqlite.Config{Path: file.Path()})
	if err != nil {
		t.Fatal(err)
	}
	r.closers = append(r.closers, func() { _ = events.Close() })
	r.journal = events
	if r.client, err = worker.NewClient(worker.ClientConfig{Broker: r.broker, DefaultQueue: name}); err != nil {
		t.Fatal(err)
	}
	return r
}

// close ends workers, receivers and broker.
func (r *rig) close() {
	for len(r.closers) > 0 {
		last := r.closers[len(r.closers)-1]
		r.closers = r.closers[:len(r.closers)-1]
		last()
	}
}

// add adds an endpoint that leads to the receiver.
func (r *rig) add(id string, change func(*webhook.Endpoint)) webhook.Endpoint {
	r.t.Helper()
	soon, err := schedule.Constant(time.Millisecond, schedule.JitterNone)
	if err != nil {
		r.t.Fatal(err)
	}
	e := webhook.Endpoint{
		ID: id, Tenant: webhook.DefaultTenant, URL: r.seen.URL + "/" + id, Secrets: []signature.Secret{signature.NewSecret()}, AllowHTTP: true, Backoff: soon,
	}
	if change != nil {
		change(&e)
	}
	r.endpoints = append(r.endpoints, e)
	return e
}

// Matching implements webhook.Subscribers.
func (r *rig) Matching(tenant, eventType string) (found []webhook.Endpoint, err error) {
	for _, e := range r.endpoints {
		if e.Tenant == tenant && e.Wants(eventType) {
			found = append(found, e)
		}
	}
	return found, nil
}

// Observe implements worker.Observer.
func (r *rig) Observe(e worker.Event) {
	if _, ok := e.(*worker.Settled); ok {
		select {
		case r.settled <- struct{}{}:
		default:
		}
	}
}

func guard(t testing.TB) *webhook.Guard {
	t.Helper()
	g, err := webhook.NewGuard(webhook.GuardConfig{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// maxAttempts of the rig's deliveries.
const maxAttempts = 3

// start runs a worker until stop is called or the test ends. observe may be nil.
func (r *rig) start(observe func(webhook.Attempt), also ...worker.Observer) (stop func()) {
	r.t.Helper()
	static, err := webhook.NewStatic(guard(r.t), r.endpoints...)
	if err != nil {
		r.t.Fatal(err)
	}
	registry := worker.NewRegistry()
	sender, err := webhook.NewSender(webhook.Config{Endpoints: static, Guard: guard(r.t), Observe: observe})
	if err != nil {
		r.t.Fatal(err)
	}
	sender.Register(registry)
	registry.Configure(webhook.KindDeliver, func(k *worker.KindConfig) { k.MaxAttempts = maxAttempts })
	breaker := breaker.Webhook()
	breaker.FailurePercent = new(0)
	w, err := worker.New(worker.Config{
		Broker: r.broker, Queues: []worker.QueueConfig{{Name: r.queue}}, Registry: registry, Store: r.claims, DeadLetters: r.dead, Concurrency: 10, Observers: append(also, r),
		Destinations: pools.DestinationsConfig{Default: pools.DestinationConfig{
			Breaker: breaker, Concurrency: new(3), DeferFloor: time.Millisecond, DeferCap: 20 * time.Millisecond,
		}},
		StopGrace: new(time.Duration(0)), Lease: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				r.t.Errorf("run: %v", err)
			}
			sender.Close()
		})
	}
	r.closers = append(r.closers, stop)
	return stop
}

// await waits until done says so, and asks again after each settlement, and now and then.
func (r *rig) await(what string, done func() bool) {
	r.t.Helper()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-r.settled:
		case <-again.C:
		case <-limit.C:
			r.t.Fatalf("%s: does not come; %d messages are queued", what, r.queued())
		}
	}
}

// idle waits until the queue is empty.
func (r *rig) idle() {
	r.t.Helper()
	r.await("an empty queue", func() bool { return r.queued() == 0 })
}

// queued counts the messages. A broker's own depth may lag.
func (r *rig) queued() (n int) {
	r.t.Helper()
	err := r.file.Read(context.Background(), func(tx *sqlitefile.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM messages", nil, &n)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// letters returns all dead letters in a state.
func (r *rig) letters(states ...dlq.State) []dlq.Entry {
	r.t.Helper()
	list, _, err := r.dead.List(r.t.Context(), dlq.Filter{States: states}, "", 10_000)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}
