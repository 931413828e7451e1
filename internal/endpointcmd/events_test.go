package endpointcmd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/cli"
	"github.com/caisson-go/caisson/internal/webhooks"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
)

// An event is published to those that want it, those of the configuration file among them; the same id with another payload is refused.
func TestPublish(t *testing.T) {
	t.Parallel()
	r := newRig(t, "CAISSON_WEBHOOK_ENDPOINTS_FILED_URL=https://example.com/", "CAISSON_WEBHOOK_ENDPOINTS_FILED_SECRETS="+webhook.NewSecret().Reveal())
	r.run("endpoints", "add", "a", url, "--event", "invoice.*").ok()
	r.run("endpoints", "add", "b", url, "--event", "other").ok()
	got := r.run("events", "publish", "invoice.paid", `{"a":1}`, "--id", "evt_1")
	if got.ok() != "evt_1\n" || got.err != "for 2 endpoints\n" {
		t.Errorf("printed %q and %q", got.out, got.err)
	}
	if out := r.runWith(`{"a":1}`, "events", "publish", "invoice.paid", "-", "--id", "evt_1", "--json").ok(); out != `{"id":"evt_1","endpoints":2}`+"\n" {
		t.Errorf("--json printed %q", out)
	}
	r.run("events", "publish", "invoice.paid", `{"a":2}`, "--id", "evt_1").fails(cli.Failure, "another --id")
	r.run("events", "publish", "in voice", "1").fails(cli.Usage, "letters")
	if out := r.run("endpoints", "resend", "a", "evt_1").ok(); !strings.HasPrefix(out, "event evt_1 is enqueued as job ") {
		t.Errorf("resend printed %q", out)
	}
	r.run("endpoints", "resend", "a", "evt_2").fails(cli.Failure, `event evt_2 of tenant "default"`)
	if out := r.run("endpoints", "recover", "a", "--since", "1h").ok(); out != "enqueued 1 event that had no attempt, and replayed 0 dead letters\n" {
		t.Errorf("recover printed %q", out)
	}
	if out := r.run("endpoints", "attempts", "a").ok(); !strings.HasPrefix(out, "AT ") {
		t.Errorf("attempts printed %q", out)
	}
}

// What became of an event is told for each endpoint that wants it or was called for it.
func TestShowEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for id, pattern := range map[string]string{"a": "invoice.*", "b": "invoice.paid", "c": "other"} {
		r.run("endpoints", "add", id, url, "--event", pattern).ok()
	}
	r.run("endpoints", "add", "foreign", url, "--tenant", "acme").ok()
	r.run("endpoints", "pause", "b").ok()
	r.run("events", "publish", "invoice.paid", `{"a":1}`, "--id", "evt_1").ok()
	r.run("endpoints", "add", "d", url, "--event", "invoice.*").ok()
	now := time.Now().UTC().Truncate(time.Second)
	r.log(
		journal.Attempt{Tenant: "default", Endpoint: "a", Event: "evt_1", Number: 1, At: now.Add(-time.Minute), Status: 500},
		journal.Attempt{Tenant: "default", Endpoint: "a", Event: "evt_1", Number: 2, At: now, Status: 204},
		journal.Attempt{Tenant: "default", Endpoint: "gone", Event: "evt_1", Number: 1, At: now, Error: "connection refused"},
		journal.Attempt{Tenant: "default", Endpoint: "a", Event: "evt_2", Number: 1, At: now, Status: 204},
		journal.Attempt{Tenant: "acme", Endpoint: "foreign", Event: "evt_1", Number: 1, At: now, Status: 204},
	)

	var got struct {
		ID, Tenant, Type string
		Size             int
		At               time.Time
		Deliveries       []webhooks.Fate
	}
	r.run("events", "show", "evt_1", "--json").into(&got)
	if got.ID != "evt_1" || got.Tenant != "default" || got.Type != "invoice.paid" || got.Size != 7 || got.At.IsZero() || len(got.Deliveries) != 4 {
		t.Fatalf("%+v", got)
	}
	a, b, d, gone := got.Deliveries[0], got.Deliveries[1], got.Deliveries[2], got.Deliveries[3]
	if a.Endpoint != "a" || a.Job != "a:evt_1" || a.Attempts != 2 || a.Last.Status != 204 || !a.Delivered.Equal(now) || a.AddedLater {
		t.Errorf("a: %+v", a)
	}
	if b.Endpoint != "b" || b.State != "paused" || b.Attempts != 0 || !b.Delivered.IsZero() || b.AddedLater {
		t.Errorf("b: %+v", b)
	}
	if d.Endpoint != "d" || !d.Wanted || !d.AddedLater {
		t.Errorf("d: %+v", d)
	}
	if gone.Endpoint != "gone" || gone.State != "" || gone.Wanted || gone.Last.Error != "connection refused" {
		t.Errorf("gone: %+v", gone)
	}

	text := r.run("events", "show", "evt_1").ok()
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(text, "event evt_1 of tenant default: invoice.paid, 7 bytes of application/json, published at 20") ||
		!strings.HasPrefix(lines[2], "a ") || !strings.Contains(lines[2], " yes ") || !strings.Contains(lines[2], " 204 ") || !strings.Contains(lines[4], "active, added later") {
		t.Errorf("printed\n%s", text)
	}
	r.run("events", "show", "evt_9").fails(cli.Failure, "--tenant names another")
	r.run("events", "show", "evt_1", "--tenant", "acme").fails(cli.Failure, "of tenant acme: no such webhook event")
	r.run("events", "publish", "nobody.cares", "{}", "--id", "evt_3", "--tenant", "empty").ok()
	if out := r.run("events", "show", "evt_3", "--tenant", "empty").ok(); !strings.HasSuffix(out, "no endpoint wants it\n") {
		t.Errorf("printed\n%s", out)
	}
}

// A payload that was forgotten is not an empty one, and one that the API would not take is not published from here either.
func TestPayloads(t *testing.T) {
	t.Parallel()
	r := newRig(t, "CAISSON_WEBHOOK_MAX_EVENT=1024")
	r.run("events", "publish", "a").fails(cli.Usage, "'' publishes an empty one")
	r.run("events", "publish", "a", "").ok()
	r.run("events", "publish", "a", strings.Repeat("x", 1025)).fails(cli.Usage, "has 1025 bytes, and at most 1024 are taken: raise webhook.max_event")
	r.run("events", "publish", "a", strings.Repeat("x", 1024)).ok()
}

// A program with another key publishes to an endpoint that it cannot read: the delivery waits for a worker that can.
func TestPublishWithTheWrongKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("endpoints", "add", "sealed", url, "--event", "invoice.*").ok()
	other := r.with("CAISSON_WEBHOOK_SECRET_KEY=" + endpoints.NewKey())
	for _, program := range []*rig{other, r} {
		if out := program.run("events", "publish", "invoice.paid", `{"a":1}`, "--id", "evt_1", "--json").ok(); out != `{"id":"evt_1","endpoints":1}`+"\n" {
			t.Errorf("printed %q", out)
		}
	}
}
