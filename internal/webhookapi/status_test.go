package webhookapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	dlqsqlite "github.com/caisson-go/caisson/dlq/sqlite"
	"github.com/caisson-go/caisson/internal/fleet"
	fleetsqlite "github.com/caisson-go/caisson/internal/fleet/sqlite"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
	journalsqlite "github.com/caisson-go/caisson/webhook/journal/sqlite"
)

// Health of an endpoint of which nothing is known is zero, and what the API has no store for is absent.
func TestHealth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(`{"id":"shop","url":"https://example.com/"}`)
	if a := r.get("/v1/endpoints/shop/health").is(200); string(a.body) != `{"failures":0}`+"\n" {
		t.Errorf("of a new endpoint: %s", a.body)
	}
	r.get("/v1/endpoints/nobody/health").refuses(404, "", "")
}

// What workers, board, log, lines and dead letters know of an endpoint is in one answer.
func TestHealthTellsAll(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	lines := got(journalsqlite.Open(ctx, journalsqlite.Config{Path: ":memory:"}))(t)
	t.Cleanup(func() { must(t, lines.Close()) })
	letters := got(dlqsqlite.Open(ctx, dlqsqlite.Config{Path: ":memory:"}))(t)
	t.Cleanup(func() { must(t, letters.Close()) })
	store := got(fleetsqlite.Open(ctx, fleetsqlite.Config{Path: ":memory:"}))(t)
	t.Cleanup(func() { must(t, store.Close()) })
	r := newRig(t, func(c *webhookapi.Config) { c.Queues, c.Letters, c.StatusStore = lines, letters, store })
	r.add(`{"id":"shop","url":"https://example.com/","ordered":true}`)
	now := time.Now().UTC().Truncate(time.Second)
	got(r.store.Report(ctx, []endpoints.Delta{{Endpoint: "shop", Failures: 7, FirstFailure: now.Add(-time.Hour)}}))(t)
	must(t, store.Publish(ctx, fleet.Report{ID: "w", Owner: "w", Sent: now, Destinations: []fleet.Destination{
		{Name: "shop", State: "open", Reason: "breaker_open", Since: now, Next: now.Add(time.Minute), Waiting: 2},
	}}))
	must(t, r.journal.Log(ctx, []journal.Attempt{{Tenant: "default", Endpoint: "shop", Event: "a", Job: "shop:a", Number: 1, At: now, Status: 503, Phase: "answered"}}))
	for i, state := range []dlq.State{dlq.StateDead, dlq.StateHeld, dlq.StateHeld} {
		for _, err := range letters.Put(ctx, []dlq.Entry{{
			Job: fmt.Sprint("shop:", i), Queue: "default", Kind: webhook.KindDeliver, Destination: "shop", State: state, Cause: dlq.CauseExhausted, Error: "no",
			Message: queue.Message{Body: []byte("{}")},
		}}) {
			must(t, err)
		}
	}
	for i := range 5 {
		got(lines.Append(ctx, "default", fmt.Sprint("evt-", i), []string{"shop"}))(t)
	}
	var h struct {
		webhookapi.Health
		webhookapi.Traffic
	}
	r.get("/v1/endpoints/shop/health").is(200).into(&h)
	if h.Failures != 7 || h.Breaker == nil || h.Breaker.Refusing != 1 || h.Breaker.Worst.State != "open" || h.Last == nil || h.Last.Status != 503 {
		t.Errorf("%+v", h)
	}
	if h.Held == nil || *h.Held != 2 || h.Dead == nil || *h.Dead != 1 || h.Queued == nil || *h.Queued != 5 {
		t.Errorf("%+v", h.Traffic)
	}
}
