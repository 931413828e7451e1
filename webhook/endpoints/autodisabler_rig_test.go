package endpoints_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/dlq"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/endpoints/postgres"
	"github.com/caisson-go/caisson/worker"
)

// office is a registry with a real worker that takes the notices, in virtual time. Keepers come and go.
type office struct {
	t        *testing.T
	store    *patchy
	keys     *endpoints.Keyring
	registry *endpoints.Registry
	client   *worker.Client
	log      *lines

	mu       sync.Mutex
	disabled []webhook.Endpoint // as keepers told
	enqueued int                // jobs that keepers enqueued, copies too
	notices  []endpoints.Disabled
}

// Observe implements worker.Observer.
func (o *office) Observe(e worker.Event) {
	if _, ok := e.(*worker.Settled); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.enqueued++
	}
}

// patchy is a store that does not always take reports.
type patchy struct{ faulty }

func (p *patchy) Report(ctx context.Context, deltas []endpoints.Delta) ([]endpoints.Health, error) {
	if err := p.failing(); err != nil {
		return nil, err
	}
	return p.Store.Report(ctx, deltas)
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// inOffice runs do in virtual time with each store, with endpoints of those ids.
func inOffice(t *testing.T, do func(t *testing.T, o *office), ids ...string) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { inOfficeOn(t, open(t), do, ids...) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			pool, schema := testserver.VirtualSchema(t)
			inOfficeOn(t, postgres.New(pool, postgres.Config{Schema: schema}), do, ids...)
		})
	})
}

// inOfficeOn is inOffice with a store, in a bubble.
func inOfficeOn(t *testing.T, store endpoints.Store, do func(t *testing.T, o *office), ids ...string) {
	t.Helper()
	o := &office{t: t, store: &patchy{faulty{Store: store}}, keys: ring(t, endpoints.NewKey()), log: &lines{}}
	o.registry = registry(t, o.store, o.keys)
	for _, id := range ids {
		add(t, o.registry, endpoint(id))
	}
	stop := o.work()
	do(t, o)
	stop()
}

// work runs the worker of the notices.
func (o *office) work() (stop func()) {
	t, ctx := o.t, context.Background()
	broker, err := embedded.Open(ctx, embedded.Config{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: broker.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = claims.Close() })
	if err := broker.CreateQueue(ctx, worker.DefaultQueue); err != nil {
		t.Fatal(err)
	}
	if o.client, err = worker.NewClient(worker.ClientConfig{Broker: broker}); err != nil {
		t.Fatal(err)
	}
	kinds := worker.NewRegistry()
	worker.Handle(kinds, worker.Kind[json.RawMessage]{Name: endpoints.KindDisabled}, func(_ context.Context, raw json.RawMessage) error {
		var d endpoints.Disabled
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Error(err)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.notices = append(o.notices, d)
		return nil
	})
	w, err := worker.New(worker.Config{
		Broker: broker, Registry: kinds, Store: claims, DeadLetters: discard{t}, Observers: []worker.Observer{o}, Logger: slog.New(slog.DiscardHandler),
		Hold: worker.HoldConfig{Interval: time.Hour}, CleanUpInterval: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	}
}

// everyTick is the interval of mirrors and keepers: hours of virtual time go by faster than with the usual second.
const everyTick = time.Minute

// process is one worker process, as far as endpoints are concerned.
type process struct {
	*endpoints.AutoDisabler
	mirror *endpoints.Mirror
	stop   func()
}

// start runs a mirror and a disabler.
func (o *office) start(change func(*endpoints.AutoDisablerConfig)) process {
	o.t.Helper()
	logger := slog.New(slog.NewTextHandler(o.log, nil))
	cfg := endpoints.AutoDisablerConfig{Registry: o.registry, Client: o.client, Interval: everyTick, Logger: logger, OnDisabled: func(e webhook.Endpoint) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.disabled = append(o.disabled, e)
	}}
	if change != nil {
		change(&cfg)
	}
	mirror, err := endpoints.NewMirror(endpoints.MirrorConfig{Registry: cfg.Registry, Interval: everyTick, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		o.t.Fatal(err)
	}
	cfg.Endpoints = mirror
	disabler, err := endpoints.NewAutoDisabler(cfg)
	if err != nil {
		o.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = mirror.Run(ctx) })
	running.Go(func() { _ = disabler.Run(ctx) })
	synctest.Wait()
	return process{disabler, mirror, func() {
		cancel()
		running.Wait()
	}}
}

// saw tells a process of one call that ended now.
func (p process) saw(endpoint, event string, status int) {
	a := webhook.Attempt{Endpoint: endpoint, Event: event, At: time.Now(), Response: webhook.Response{Status: status}}
	if status == 0 {
		a.Response.Err = errors.New("connection refused")
	}
	p.Observe(a)
}

// fail tells a process of one failed call each interval, each of another event.
func (p process) fail(endpoint string, every, lasting time.Duration) {
	for i, end := 0, time.Now().Add(lasting); time.Now().Before(end); i++ {
		p.saw(endpoint, fmt.Sprintf("evt_%d", i), 500)
		time.Sleep(every)
	}
	synctest.Wait()
}

// state returns the state and reason of an endpoint.
func (o *office) state(id string) string {
	o.t.Helper()
	e, err := o.registry.Get(o.t.Context(), id)
	if err != nil {
		o.t.Fatal(err)
	}
	return strings.TrimSpace(string(e.State) + " " + e.Reason)
}

func (o *office) want(id, state string, disabled, notices int) {
	o.t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if got := o.state(id); got != state || len(o.disabled) != disabled || len(o.notices) != notices {
		o.t.Errorf("%s is %s, disabled %d times, %d notices; want %s, %d, %d", id, got, len(o.disabled), len(o.notices), state, disabled, notices)
	}
}

// discard wants no dead letter.
type discard struct{ t *testing.T }

func (d discard) Put(_ context.Context, entries []dlq.Entry) []error {
	for _, e := range entries {
		d.t.Errorf("dead letter of %s: %s", e.Job, e.Error)
	}
	return make([]error, len(entries))
}
