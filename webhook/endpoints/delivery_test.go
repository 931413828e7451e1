package endpoints_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	claimsqlite "github.com/caisson-go/caisson/idempotency/sqlite"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/worker"
)

const quick = 20 * time.Millisecond

// plant is everything together: registry, mirror, disabler, sender and worker, with a receiver that answers what status says.
type plant struct {
	t        *testing.T
	keys     *endpoints.Keyring
	registry *endpoints.Registry
	mirror   *endpoints.Mirror
	disabler *endpoints.AutoDisabler
	client   *worker.Client
	settled  chan worker.Settled
	changed  chan webhook.Endpoint // as the worker's destinations follow
	notices  chan endpoints.Disabled
	status   atomic.Int64
	calls    atomic.Int64
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	return newPlantOn(t, open(t), quick, func(*endpoints.AutoDisablerConfig) {})
}

// newPlantOn has its registry in store, and a mirror that looks for changes that often. change may alter the disabler.
func newPlantOn(t *testing.T, store endpoints.Store, every time.Duration, change func(*endpoints.AutoDisablerConfig)) *plant {
	t.Helper()
	ctx := context.Background()
	p := &plant{t: t, settled: make(chan worker.Settled, 1000), changed: make(chan webhook.Endpoint, 100), notices: make(chan endpoints.Disabled, 100)}
	p.status.Store(http.StatusOK)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.calls.Add(1)
		w.WriteHeader(int(p.status.Load()))
	}))
	t.Cleanup(receiver.Close)
	broker, err := embedded.Open(ctx, embedded.Config{Path: ":memory:"})
	check(t, err)
	t.Cleanup(func() { check(t, broker.Close()) })
	claims, err := claimsqlite.Open(ctx, claimsqlite.Config{Path: broker.Path()})
	check(t, err)
	t.Cleanup(func() { _ = claims.Close() })
	dead, err := dlqsqlite.Open(ctx, dlqsqlite.Config{Path: broker.Path()})
	check(t, err)
	t.Cleanup(func() { _ = dead.Close() })
	check(t, broker.CreateQueue(ctx, worker.DefaultQueue))
	p.client, err = worker.NewClient(worker.ClientConfig{Broker: broker})
	check(t, err)

	guard := laxGuard(t)
	p.keys = ring(t, endpoints.NewKey())
	p.registry, err = endpoints.NewRegistry(endpoints.RegistryConfig{Store: store, Keys: p.keys, Guard: guard})
	check(t, err)
	e := endpoint("shop")
	e.URL, e.AllowHTTP = receiver.URL, true
	add(t, p.registry, e)

	var w *worker.Worker
	p.mirror, err = endpoints.NewMirror(endpoints.MirrorConfig{Registry: p.registry, Interval: every, OnChange: func(e webhook.Endpoint, deleted bool) {
		var own *pools.DestinationConfig
		if !deleted {
			c := e.DestinationConfig()
			own = &c
		}
		if err := webhook.Apply(w.Destinations(), time.Now(), e, own); err != nil {
			t.Error(err)
		}
		p.changed <- e
	}})
	check(t, err)
	quiet := slog.New(slog.DiscardHandler)
	cfg := endpoints.AutoDisablerConfig{Registry: p.registry, Endpoints: p.mirror, Client: p.client, Interval: quick, Logger: quiet}
	change(&cfg)
	p.disabler, err = endpoints.NewAutoDisabler(cfg)
	check(t, err)
	kinds := worker.NewRegistry()
	worker.Handle(kinds, worker.Kind[endpoints.Disabled]{Name: endpoints.KindDisabled}, func(_ context.Context, d endpoints.Disabled) error {
		p.notices <- d
		return nil
	})
	sender, err := webhook.NewSender(webhook.Config{Endpoints: p.mirror, Guard: guard, Observe: p.disabler.Observe})
	check(t, err)
	sender.Register(kinds)
	t.Cleanup(sender.Close)
	w, err = worker.New(worker.Config{
		Broker: broker, Registry: kinds, Store: claims, DeadLetters: dead, Observers: []worker.Observer{p}, Logger: quiet,
		Hold: worker.HoldConfig{Interval: quick}, StopGrace: new(time.Duration(0)),
	})
	check(t, err)

	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{p.mirror.Run, p.disabler.Run, w.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	p.seen(webhook.StateActive, "")
	return p
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Observe implements worker.Observer.
func (p *plant) Observe(e worker.Event) {
	if s, ok := e.(*worker.Settled); ok {
		p.settled <- *s
	}
}

// deliver enqueues an event and returns how its deliveries end, up to the one that pick wants.
func (p *plant) deliver(event string, pick func(worker.Settled) bool) worker.Settled {
	p.t.Helper()
	_, err := p.client.Enqueue(p.t.Context(), webhook.NewDelivery("shop", event, nil, nil))
	check(p.t, err)
	return p.await(pick)
}

func (p *plant) await(pick func(worker.Settled) bool) worker.Settled {
	p.t.Helper()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for {
		select {
		case s := <-p.settled:
			if pick(s) {
				return s
			}
		case <-limit.C:
			p.t.Fatal("the delivery did not end as expected")
		}
	}
}

// seen waits until the worker follows the endpoint into a state.
func (p *plant) seen(state webhook.State, reason string) {
	p.t.Helper()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for {
		select {
		case e := <-p.changed:
			if e.State == state && e.Reason == reason {
				return
			}
		case <-limit.C:
			p.t.Fatalf("nobody saw the endpoint as %s %q", state, reason)
		}
	}
}

func ended(s worker.Settlement) func(worker.Settled) bool {
	return func(e worker.Settled) bool { return e.Kind == webhook.KindDeliver && e.Settlement == s }
}

// TestStatesOfADelivery: an endpoint goes through all its states, and no delivery is lost or made while it may not be.
func TestStatesOfADelivery(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	ctx := t.Context()
	p.deliver("evt_1", ended(worker.SettlementAck))

	must(t)(p.registry.Pause(ctx, "shop", "moving"))
	p.seen(webhook.StatePaused, "moving")
	for i := range 5 {
		p.deliver(fmt.Sprintf("evt_2_%d", i), ended(worker.SettlementHold))
	}
	if n := p.calls.Load(); n != 1 {
		t.Errorf("%d calls while it was paused", n-1)
	}
	must(t)(p.registry.Enable(ctx, "shop"))
	p.seen(webhook.StateActive, "")
	for range 5 {
		if s := p.await(ended(worker.SettlementAck)); s.Job.Attempt != 1 {
			t.Errorf("attempt %d", s.Job.Attempt)
		}
	}

	p.status.Store(http.StatusGone)
	if s := p.deliver("evt_3", ended(worker.SettlementDeadLetter)); s.Cause != dlq.CauseEndpointGone {
		t.Errorf("dead of %s", s.Cause)
	}
	p.seen(webhook.StateDisabled, webhook.ReasonGone) // the disabler told everybody
	p.status.Store(http.StatusOK)
	before := p.calls.Load()
	if s := p.deliver("evt_4", ended(worker.SettlementDeadLetter)); s.Cause != dlq.CauseEndpointGone || p.calls.Load() != before {
		t.Errorf("dead of %s after %d more calls", s.Cause, p.calls.Load()-before)
	}
	must(t)(p.registry.Enable(ctx, "shop"))
	p.seen(webhook.StateActive, "")
	p.deliver("evt_5", ended(worker.SettlementAck))
	if n := p.calls.Load(); n != before+1 {
		t.Errorf("%d calls", n)
	}
}
