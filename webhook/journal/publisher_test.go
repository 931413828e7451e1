package journal_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/queuetest"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/worker"
)

func (r *rig) publisher(change func(*webhook.PublisherConfig)) *webhook.Publisher {
	r.t.Helper()
	cfg := webhook.PublisherConfig{Client: r.client, Subscribers: r, Events: r.journal}
	if change != nil {
		change(&cfg)
	}
	p, err := webhook.NewPublisher(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) publish(p *webhook.Publisher, e webhook.Event, want int) string {
	r.t.Helper()
	got, err := p.Publish(r.t.Context(), e)
	if err != nil {
		r.t.Fatalf("publish: %v", err)
	}
	if got.Endpoints != want || got.ID == "" {
		r.t.Errorf("published %+v, want %d endpoints", got, want)
	}
	return got.ID
}

// once fails unless each of the endpoints took each of the events exactly once.
func (r *rig) once(endpoints []string, events ...string) {
	r.t.Helper()
	for _, endpoint := range endpoints {
		got := r.seen.took(endpoint)
		slices.Sort(got)
		want := slices.Sorted(slices.Values(events))
		if !slices.Equal(got, want) {
			r.t.Errorf("%s took %v, want %v", endpoint, got, want)
		}
	}
}

func TestPublishTwiceDeliversOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("all", nil)
	r.add("invoices", func(e *webhook.Endpoint) { e.Events = []string{"invoice.*"} })
	r.add("users", func(e *webhook.Endpoint) { e.Events = []string{"user.*"} })
	r.add("other", func(e *webhook.Endpoint) { e.Tenant = "other" })
	r.add("paused", func(e *webhook.Endpoint) { e.State = webhook.StatePaused })
	r.add("failing", func(e *webhook.Endpoint) { e.State, e.Reason = webhook.StateDisabled, webhook.ReasonFailing })
	r.add("gone", func(e *webhook.Endpoint) { e.State, e.Reason = webhook.StateDisabled, webhook.ReasonGone })
	r.start(nil)
	p := r.publisher(nil)
	e := webhook.Event{ID: "evt_1", Type: "invoice.paid", Body: []byte(`{}`)}
	for range 3 {
		r.publish(p, e, 4)
		r.idle()
	}
	made := r.publish(p, webhook.Event{Type: "user.made"}, 4)
	r.idle()
	if kept, err := r.journal.Event(t.Context(), "default", made); err != nil || kept.Type != "user.made" || kept.ContentType != "application/json" {
		t.Errorf("kept %+v, %v", kept, err)
	}
	r.once([]string{"all"}, "evt_1", made)
	for _, id := range []string{"paused", "failing"} { // both events are held, once each, until somebody enables it
		held, err := r.dead.Count(t.Context(), dlq.Filter{States: []dlq.State{dlq.StateHeld}, Destination: id})
		if err != nil || held != 2 {
			t.Errorf("%s: %d held, want 2; error %v", id, held, err)
		}
	}
	r.once([]string{"paused", "failing"})
	r.once([]string{"invoices"}, "evt_1")
	r.once([]string{"users"}, made)
	r.once([]string{"other", "gone"})

	e.Body = []byte(`{"other":1}`)
	if _, err := p.Publish(t.Context(), e); !errors.Is(err, webhook.ErrEventConflict) {
		t.Errorf("another event of that id: %v", err)
	}
	r.once([]string{"invoices"}, "evt_1")
}

// A failing endpoint gets one series of attempts and one dead letter, however often the event is published.
func TestPublishTwiceGivesUpOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("shop", nil)
	r.seen.answers(func(string, string) int { return http.StatusInternalServerError })
	r.start(nil)
	p := r.publisher(nil)
	for range 3 {
		r.publish(p, webhook.Event{ID: "evt_1", Type: "t"}, 1)
	}
	r.idle()
	r.publish(p, webhook.Event{ID: "evt_1", Type: "t"}, 1)
	r.idle()
	if calls := r.seen.calls["shop"]; len(calls) != maxAttempts || len(r.letters()) != 1 {
		t.Errorf("%d calls and %d dead letters, want %d and 1", len(calls), len(r.letters()), maxAttempts)
	}
}

// Half of the batches fail; what is published again then reaches everybody once.
func TestPublishAgainAfterFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var ids []string
	for i := range 100 {
		ids = append(ids, r.add(fmt.Sprintf("shop-%03d", i), nil).ID)
	}
	p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Batch = 10 })
	e := webhook.Event{ID: "evt_1", Type: "t", Body: []byte("{}")}
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		fault queuetest.Fault
	}{
		{"not stored", queuetest.Fault{Before: broken}},
		{"confirmation lost", queuetest.Fault{After: broken}},
	} {
		r.broker.SetPlan(queuetest.When(queuetest.OpPublish, func(p queuetest.Point) bool { return (p.N-1)/10%2 == 1 }, c.fault))
		_, err := p.Publish(t.Context(), e)
		var failed *webhook.PublishError
		if !errors.As(err, &failed) || failed.Failed != 50 || failed.Endpoints != 100 || !errors.Is(err, broken) {
			t.Fatalf("%s: %v", c.name, err)
		}
		if text := err.Error(); !strings.Contains(text, "50 of 100") || !strings.Contains(text, "again under the same id") {
			t.Errorf("%s: %s", c.name, text)
		}
	}
	r.broker.SetPlan(nil)
	r.start(nil)
	r.publish(p, e, 100)
	r.idle()
	r.once(ids, "evt_1")
}

// A broker that takes nothing is not asked for each batch.
func TestPublishStopsWhereNothingIsTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 50 {
		r.add(fmt.Sprintf("shop-%03d", i), nil)
	}
	var asked atomic.Int64
	r.broker.SetPlan(func(p queuetest.Point) queuetest.Fault {
		asked.Add(1)
		return queuetest.Fault{Before: queue.ErrUnavailable}
	})
	p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Batch = 10 })
	_, err := p.Publish(t.Context(), webhook.Event{Type: "t"})
	var failed *webhook.PublishError
	if !errors.As(err, &failed) || failed.Failed != 50 || asked.Load() != 10 {
		t.Errorf("%d were asked for: %v", asked.Load(), err)
	}
}

// The memory of a large fan-out is that of a batch.
func TestPublishIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 5000 {
		r.add(fmt.Sprintf("shop-%04d", i), nil)
	}
	counting := &countingBroker{}
	client, err := worker.NewClient(worker.ClientConfig{Broker: counting})
	if err != nil {
		t.Fatal(err)
	}
	p := r.publisher(func(cfg *webhook.PublisherConfig) { cfg.Client, cfg.Events = client, nil })
	body := make([]byte, 64<<10)
	r.publish(p, webhook.Event{ID: "evt_1", Type: "t", Body: body}, 5000)
	if counting.total != 5000 || counting.largest != 100 {
		t.Errorf("%d deliveries in batches of up to %d", counting.total, counting.largest)
	}
	// All deliveries share the body, and what one of them needs besides is gone with its batch: 5,000 bodies would be 320 MB.
	if grown := counting.heap; grown > 64<<20 {
		t.Errorf("%d MiB in use while publishing", grown>>20)
	}
	p = r.publisher(nil)
	r.publish(p, webhook.Event{ID: "evt_1", Type: "t", Body: []byte("{}")}, 5000)
	if d, err := r.broker.Depth(t.Context(), worker.DefaultQueue); err != nil || d.Ready.N != 5000 {
		t.Errorf("%d deliveries are queued, %v", d.Ready.N, err)
	}
}

// countingBroker takes all and keeps nothing.
type countingBroker struct {
	total, largest int
	heap           uint64
}

func (*countingBroker) Capabilities(string) queue.Capabilities { return queue.Capabilities{} }

func (b *countingBroker) Publish(_ context.Context, _ string, pubs []queue.Publication) []queue.PublishResult {
	b.total, b.largest = b.total+len(pubs), max(b.largest, len(pubs))
	if b.total%1000 == 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.heap = max(b.heap, m.HeapAlloc)
	}
	return make([]queue.PublishResult, len(pubs))
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.publisher(nil)
	for _, e := range []webhook.Event{
		{},
		{Type: "a b"},
		{Type: "t", ID: "a.b"},
		{Type: "t", Tenant: "a b"},
		{Type: "t", ContentType: "a\nb"},
		{Type: "t", ContentType: "\xff"},
		{Type: strings.Repeat("t", 200)},
		{Type: "t", ID: strings.Repeat("e", 201)},
		{Type: "t", Tenant: strings.Repeat("e", 129)},
	} {
		if _, err := p.Publish(t.Context(), e); !errors.Is(err, webhook.ErrInvalidEvent) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if list, _, err := r.journal.Events(t.Context(), journal.EventFilter{Tenant: "default"}, "", 10); err != nil || len(list) != 0 {
		t.Errorf("kept %v, %v", list, err)
	}
	for _, cfg := range []webhook.PublisherConfig{{}, {Client: r.client}, {Subscribers: r}, {Client: r.client, Subscribers: r, Batch: -1}} {
		if _, err := webhook.NewPublisher(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

func TestDeliveryID(t *testing.T) {
	t.Parallel()
	long, longer := strings.Repeat("e", 199), strings.Repeat("e", 200)
	a, b := webhook.Event{ID: long}.JobID("shop"), webhook.Event{ID: longer}.JobID("shop")
	if a == b || len(a) > 200 || !strings.HasPrefix(a, "shop:") {
		t.Errorf("%s, %s", a, b)
	}
	for tenant, want := range map[string]string{"": "shop:evt_1", webhook.DefaultTenant: "shop:evt_1", "acme.eu": "shop:evt_1.acme.eu"} {
		if id := (webhook.Event{Tenant: tenant, ID: "evt_1"}).JobID("shop"); id != want {
			t.Errorf("tenant %q: %s, want %s", tenant, id, want)
		}
	}
}
