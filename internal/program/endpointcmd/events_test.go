package endpointcmd_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/webhook/signature"
)

// An event is published to those that want it, those of the configuration file among them; the same id with another payload is refused.
func TestPublish(t *testing.T) {
	t.Parallel()
	r := newRig(t, "CAISSON_WEBHOOK_ENDPOINTS_FILED_URL=https://example.com/", "CAISSON_WEBHOOK_ENDPOINTS_FILED_SECRETS="+signature.NewSecret().Reveal())
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
		Deliveries       []webhooks.Delivery
	}
	r.run("events", "show", "evt_1", "--json").into(&got)
	if got.ID != "evt_1" || got.Tenant != "default" || got.Type != "invoice.paid" || got.Size != 7 || got.At.IsZero() || len(got.Deliveries) != 4 {
		t.Fatalf("%+v", got)
	}
	a, b, d, gone := got.Deliveries[0], got.Deliveries[1], got.Deliveries[2], got.Deliveries[3]
	if a.Endpoint != "a" || a.Job != "a:evt_1" || a.Attempts != 2 || a.Last.Status != 204 || !a.Delivered.Equal(now) || a.AddedLater {
		t.Errorf("a: %+v", a)
	}
	if a.State != webhooks.DeliveryStateDelivered || b.State != webhooks.DeliveryStateWaiting || d.State != webhooks.DeliveryStateNotMade || gone.State != webhooks.DeliveryStateWaiting {
		t.Errorf("states: %s, %s, %s, %s", a.State, b.State, d.State, gone.State)
	}
	if b.Endpoint != "b" || b.EndpointState != "paused" || b.Attempts != 0 || !b.Delivered.IsZero() || b.AddedLater {
		t.Errorf("b: %+v", b)
	}
	if d.Endpoint != "d" || !d.Wanted || !d.AddedLater {
		t.Errorf("d: %+v", d)
	}
	if gone.Endpoint != "gone" || gone.EndpointState != "" || gone.Wanted || gone.Last.Error != "connection refused" {
		t.Errorf("gone: %+v", gone)
	}

	text := r.run("events", "show", "evt_1").ok()
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(text, "event evt_1 of tenant default: invoice.paid, 7 bytes of application/json, published at 20") ||
		!strings.HasPrefix(lines[2], "a         delivered  ") || !strings.Contains(lines[2], " 204 ") ||
		!strings.Contains(lines[3], "  waiting (not tried yet, endpoint paused)  ") || !strings.Contains(lines[4], "  not made (endpoint added later)  ") ||
		!strings.Contains(lines[5], "  waiting (tried, endpoint not known)  ") {
		t.Errorf("printed\n%s", text)
	}
	r.run("events", "show", "evt_9").fails(cli.Failure, "--tenant names another")
	r.run("events", "show", "evt_1", "--tenant", "acme").fails(cli.Failure, "of tenant acme: no such webhook event")
	r.run("events", "publish", "nobody.cares", "{}", "--id", "evt_3", "--tenant", "empty").ok()
	if out := r.run("events", "show", "evt_3", "--tenant", "empty").ok(); !strings.HasSuffix(out, "no endpoint wants it\n") {
		t.Errorf("printed\n%s", out)
	}
}

// Each delivery has one state: its dead letters, its line, and what is remembered of a call that is not logged tell it.
func TestShowEventStates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"dead", "held", "purged", "done", "replayed"} {
		r.run("endpoints", "add", id, url).ok()
	}
	r.run("endpoints", "add", "line", url, "--ordered").ok()
	r.run("events", "publish", "invoice.paid", `{}`, "--id", "evt_1").ok()
	r.run("events", "publish", "invoice.paid", `{}`, "--id", "evt_2").ok()
	r.stack(func(s *backends.Set) {
		ctx := t.Context()
		replayed := letter("replayed", "evt_2", dlq.StateDead)
		for _, err := range s.Letters.Put(ctx, []dlq.Entry{letter("dead", "evt_2", dlq.StateDead), letter("held", "evt_2", dlq.StateHeld), letter("purged", "evt_2", dlq.StateDead), replayed}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if n, err := s.Letters.Purge(ctx, dlq.Filter{Destination: "purged"}); n != 1 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
		held := idempotency.Handle{Key: idempotency.Key{Scope: webhook.KindDeliver, Value: "done:evt_2"}, Job: "done:evt_2"}
		claim := s.Claims.Claim(ctx, []idempotency.Request{{Key: held.Key, Job: held.Job, Owner: "w", Lease: time.Minute}})[0]
		held.Token = claim.Token
		if err := errors.Join(claim.Err, s.Claims.Complete(ctx, []idempotency.Completion{{Handle: held}})[0]); err != nil {
			t.Fatal(err)
		}
		replay, err := replay.New(replay.Config{ID: "r", Store: s.Letters, Broker: s.Broker, Filter: dlq.Filter{Destination: "replayed"}})
		if err != nil {
			t.Fatal(err)
		}
		if report, err := replay.Run(ctx); err != nil || report.Replayed != 1 {
			t.Fatalf("replayed %+v, %v", report, err)
		}
	})
	text := r.run("events", "show", "evt_2").ok()
	for _, want := range []string{
		"\ndead      dead ", "\nheld      held ", "\npurged    purged ", "\ndone      delivered ", "\nreplayed  waiting (not tried yet) ", "\nline      in line, second ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q\n%s", want, text)
		}
	}
	var got struct{ Deliveries []webhooks.Delivery }
	r.run("events", "show", "evt_2", "--json").into(&got)
	i := slices.IndexFunc(got.Deliveries, func(f webhooks.Delivery) bool { return f.Endpoint == "line" })
	if l := got.Deliveries[i].Position; got.Deliveries[i].State != webhooks.DeliveryStateQueued || l == nil || l.Place != 2 || l.Head != "evt_1" || l.Since.IsZero() {
		t.Errorf("in line: %+v", got.Deliveries[i])
	}
}

// Events are listed oldest first, a page at a time, without their payloads.
func TestListEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for id, typ := range map[string]string{"evt_1": "invoice.paid", "evt_2": "invoice.sent", "evt_3": "user.created"} {
		r.run("events", "publish", typ, `{"secret":"payload"}`, "--id", id).ok()
	}
	r.run("events", "publish", "invoice.paid", `{}`, "--id", "evt_9", "--tenant", "acme").ok()
	var page struct {
		Events []struct{ ID, Tenant, Type string }
		Next   string
	}
	seen := map[string]bool{}
	for after := ""; ; after = page.Next {
		page.Next = ""
		r.run("events", "list", "--type", "invoice.*", "--since", "1h", "--limit", "1", "--after", after, "--json").into(&page)
		for _, e := range page.Events {
			seen[e.ID] = true
		}
		if page.Next == "" {
			break
		}
	}
	if len(seen) != 2 || !seen["evt_1"] || !seen["evt_2"] {
		t.Errorf("listed %v", seen)
	}
	all := r.run("events", "list")
	if out := all.ok(); strings.Count(out, "\n") != 4 || strings.Contains(out, "payload") || strings.Contains(out, "evt_9") || !strings.HasPrefix(out, "AT ") || all.err != "" {
		t.Errorf("printed\n%s%s", out, all.err)
	}
	if more := r.run("events", "list", "--limit", "2"); !strings.HasPrefix(more.err, "there are more: add --after ") {
		t.Errorf("printed %q", more.err)
	}
	if out := r.run("events", "list", "--tenant", "nobody", "--json").ok(); out != `{"events":[]}`+"\n" {
		t.Errorf("printed %q", out)
	}
	r.run("events", "list", "--type", "inv*").fails(cli.Usage, "--type: event pattern")
	r.run("events", "list", "--since", "soon").fails(cli.Usage, "--since: ")
	r.run("events", "list", "--limit", "0").fails(cli.Usage, "use 1 to 1000")
	r.run("events", "list", "--after", "x").fails(cli.Failure, "cursor")
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
