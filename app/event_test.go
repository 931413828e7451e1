package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
)

// Who has only an event's id gets its deliveries, each with its state.
func TestExplainEvent(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, c *cast) {
		c.hooked()
		for _, id := range []string{"a", "b", "c", "other"} {
			events := "invoice.*"
			if id == "other" {
				events = "nothing"
			}
			ok(t, c.call("endpoints", "add", id, "https://example.com/hook", "--event", events))
		}
		ok(t, c.call("endpoints", "add", "line", "https://example.com/hook", "--ordered", "--event", "invoice.*"))
		ok(t, c.call("endpoints", "pause", "b"))
		ok(t, c.call("events", "publish", "invoice.paid", "{}", "--id", "evt_1"))
		ok(t, c.call("events", "publish", "invoice.paid", "{}", "--id", "evt_2"))
		ok(t, c.call("endpoints", "add", "late", "https://example.com/hook"))
		c.remove("c:evt_2")
		c.remove("a:evt_2")
		now := time.Now()
		if err := c.stack().Journal.Log(t.Context(), []journal.Attempt{
			{Tenant: "default", Endpoint: "c", Event: "evt_2", Number: 1, At: now, Status: 503},
			{Tenant: "default", Endpoint: "a", Event: "evt_2", Number: 1, At: now, Status: 200},
		}); err != nil {
			t.Fatal(err)
		}

		text := ok(t, c.call("explain", "evt_2"))
		for _, want := range []string{
			"event evt_2 of tenant default was published at 20", ": invoice.paid, 2 bytes, for 5 endpoints.\n",
			"job b:evt_2 waits for its turn in queue default behind ", "; its endpoint b is paused since 20",
			"job a:evt_2 was delivered at 20",
			"job c:evt_2 is in no queue and no store, after 1 call, the last at ", "(status 503): worker endpoints resend c evt_2 sends it.\n",
			"job line:evt_2 waits second in the ordered queue of endpoint line, behind event evt_1, its head since 20",
			"job late:evt_2 was never made, since the endpoint was added after the event",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("lacks %q\n%s", want, text)
			}
		}
		if strings.Contains(text, "other:") || strings.Contains(text, ":evt_1") {
			t.Errorf("tells of others\n%s", text)
		}
		e := c.explain("evt_2")
		if len(e.Jobs) != 5 || e.Event.ID != "evt_2" || e.Event.Deliveries != 5 || e.Jobs[4].State != "completed" || e.Jobs[4].Job != "a:evt_2" {
			t.Errorf("%+v", e)
		}
		ok(t, c.call("endpoints", "pause", "line", "--reason", "moving"))
		ok(t, c.call("events", "publish", "invoice.paid", "{}", "--id", "evt_3"))
		if e := c.becomes("line:evt_3", "in_ordered_queue", "waits third in the ordered queue of endpoint line, behind event evt_1, its head since 20",
			"; its endpoint line is paused (moving) since 20", "endpoints enable line"); e.Event.ID != "" {
			t.Errorf("a delivery in line: %+v", e)
		}
		c.becomes("line:evt_1", "ready", "is paused (moving)")
		c.remove("line:evt_1")
		c.becomes("line:evt_1", "in_ordered_queue", "is the head of the ordered queue of endpoint line since 20", "its job is in no queue: workers enqueue it again")
		c.becomes("late:evt_2", "unseen", "was never made, since the endpoint was added after the event")
		if r := c.call("explain", "other:evt_2"); r.code != 1 || !strings.Contains(r.err, "endpoint other neither wants it nor was called for it") {
			t.Errorf("not meant for it: %+v", r)
		}
		if e := c.explain("b:evt_2"); len(e.Jobs) != 1 || e.Event.ID != "" {
			t.Errorf("a delivery: %+v", e)
		}
	})
}

func TestExplainNoEvent(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	c.enqueue("quick", "one")
	if r := c.call("explain", "evt_1"); r.code != 1 || strings.Contains(r.err, "webhook") {
		t.Errorf("without webhooks: %+v", r)
	}
	c.hooked()
	if r := c.call("explain", "evt_1", "--tenant", "acme"); r.code != 1 || !strings.Contains(r.err, "nor is there a webhook event of that id and tenant acme (--tenant); its delivery to one endpoint is the job ENDPOINT:EVENT, or ENDPOINT:EVENT.TENANT") {
		t.Errorf("no event: %+v", r)
	}
	ok(t, c.call("events", "publish", "nobody.cares", "{}", "--id", "evt_1", "--tenant", "acme"))
	if text := ok(t, c.call("explain", "evt_1", "--tenant", "acme")); !strings.HasSuffix(text, ": nobody.cares, 2 bytes, for 0 endpoints.\n") {
		t.Errorf("nobody wants it\n%s", text)
	}
}

// What was published while an endpoint was gone was not made for it: recover sends it once the endpoint is enabled.
func TestExplainEventOfAGoneEndpoint(t *testing.T) {
	t.Parallel()
	c := newCast(t)
	key := endpoints.NewKey()
	c.env = append(c.env, "CAISSON_WEBHOOK_SECRET_KEY="+key)
	c.addGone("shop", key)
	ok(t, c.call("events", "publish", "invoice.paid", "{}", "--id", "evt_1"))
	c.becomes("shop:evt_1", "unseen", "was not made, because the endpoint was gone then, since 20", ": once it is enabled, worker endpoints recover shop --since 20")
	if text := ok(t, c.call("events", "show", "evt_1")); !strings.Contains(text, "not made (endpoint gone)") {
		t.Errorf("shown as\n%s", text)
	}
	ok(t, c.call("endpoints", "enable", "shop"))
	c.becomes("shop:evt_1", "unseen", "was not made, likely because the endpoint was gone then: it is active again since 20", "endpoints recover shop --since 20")
	ok(t, c.call("endpoints", "recover", "shop", "--since", "1h"))
	c.becomes("shop:evt_1", "ready")
}

// The endpoint's own schedule says how many attempts a delivery has.
func TestExplainAttemptsOfAnEndpoint(t *testing.T) {
	t.Parallel()
	c := newCast(t).hooked()
	ok(t, c.call("endpoints", "add", "shop", "https://example.com/hook", "--backoff", "fixed(1s, 2s)"))
	ok(t, c.call("endpoints", "add", "usual", "https://example.com/hook"))
	ok(t, c.call("events", "publish", "invoice.paid", "{}", "--id", "evt_1"))
	for job, want := range map[string]int{"shop:evt_1": 3, "usual:evt_1": 0} { // no worker is live that would tell of the kind
		if e := c.explain(job); e.Jobs[0].MaxAttempts != want {
			t.Errorf("%s has at most %d attempts, want %d", job, e.Jobs[0].MaxAttempts, want)
		}
	}
}
