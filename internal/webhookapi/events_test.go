package webhookapi_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// seen waits until the publisher knows so many endpoints.
func (r *rig) seen(n int) {
	r.t.Helper()
	eventually.True(r.t, "the mirror has all endpoints", func() bool { return r.mirror.Len() == n })
}

// ready is how many jobs are in the queue.
func (r *rig) ready() int {
	r.t.Helper()
	d := got(r.broker.Depth(r.t.Context(), "default"))(r.t)
	return int(d.Ready.N)
}

// An event goes to those that want it, once; the same id with another payload is refused. Its payload is kept byte for byte.
func TestPublish(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(`{"id":"a","url":"https://example.com/","events":["invoice.*"]}`)
	r.add(`{"id":"b","url":"https://example.com/"}`)
	r.add(`{"id":"c","url":"https://example.com/","tenant":"other"}`)
	r.seen(3)
	const payload = `{ "b":"a&b<c>\u2028", "a":1.0, "a":2 }`
	event := `{"id":"evt_1","type":"invoice.paid","payload":` + payload + `}`
	var p webhook.Published
	published := r.post("/v1/events", event).is(http.StatusAccepted).into(&p)
	if p.ID != "evt_1" || p.Endpoints != 2 || r.ready() != 2 || published.header.Get("Location") != "/v1/events/evt_1" {
		t.Errorf("%+v, %d jobs, %v", p, r.ready(), published.header)
	}
	r.post("/v1/events", event).is(http.StatusAccepted)
	r.post("/v1/events", strings.Replace(event, "1.0", "1.1", 1)).refuses(409, "", "an id of its own")
	r.post("/v1/events", strings.Replace(event, "invoice.paid", "invoice.sent", 1)).refuses(409, "", "an id of its own")

	var e struct {
		ID, Tenant, Type string
		Payload          string `json:"payload_base64"`
	}
	r.get("/v1/events/evt_1").is(200).into(&e)
	if kept := string(got(base64.StdEncoding.DecodeString(e.Payload))(t)); kept != payload || e.Type != "invoice.paid" || e.Tenant != "default" {
		t.Errorf("kept %+v with payload %q", e, kept)
	}
	r.get("/v1/events/evt_1?tenant=other").refuses(404, "", "tenant")
	r.get("/v1/events/evt_2").refuses(404, "", "not published")

	r.post("/v1/events", `{"type":"other","tenant":"nobody","payload":null}`).is(http.StatusAccepted).into(&p)
	if p.ID == "" || p.Endpoints != 0 {
		t.Errorf("without an id, wanted by nobody: %+v", p)
	}
}

// With the headers the body is the payload as it is, whatever it is.
func TestPublishRawBody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	body := "<a>\xff\x00</a>\r\n"
	raw := request{method: "POST", path: "/v1/events", body: body, header: http.Header{
		"Content-Type": {"application/xml"}, "Caisson-Event-Type": {"a.b"}, "Caisson-Event-Id": {"evt_x"}, "Caisson-Event-Tenant": {"acme"},
	}}
	r.do(raw).is(http.StatusAccepted)
	e := got(r.journal.Event(t.Context(), "acme", "evt_x"))(t)
	if string(e.Body) != body || e.Type != "a.b" || e.ContentType != "application/xml" {
		t.Errorf("kept %+v with body %q", e, e.Body)
	}
	raw.header["Caisson-Event-Type"] = []string{"a b"}
	r.do(raw).refuses(422, "type", "letters")
}

// Events are listed a page at a time, without their payloads.
func TestListEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, typ := range []string{"invoice.paid", "user.created", "invoice.sent"} {
		must(t, r.journal.PutEvent(t.Context(), webhook.Event{ID: fmt.Sprint("evt_", i), Tenant: "default", Type: typ, ContentType: "application/json", Body: []byte("secret")}))
	}
	must(t, r.journal.PutEvent(t.Context(), webhook.Event{ID: "foreign", Tenant: "acme", Type: "invoice.paid", Body: []byte("{}")}))
	var first, second webhookapi.EventPage
	a := r.get("/v1/events?type=invoice.*&limit=1").is(200).into(&first)
	if len(first.Events) != 1 || first.Events[0].ID != "evt_0" || first.Events[0].At.IsZero() || first.Next == "" || strings.Contains(string(a.body), "secret") {
		t.Errorf("the first page: %s", a.body)
	}
	r.get("/v1/events?type=invoice.*&limit=1&after=" + url.QueryEscape(first.Next)).is(200).into(&second)
	if len(second.Events) != 1 || second.Events[0].ID != "evt_2" || second.Next != "" {
		t.Errorf("the second page: %+v", second)
	}
	if a := r.get("/v1/events?tenant=acme").is(200); !strings.Contains(string(a.body), `"foreign"`) || strings.Contains(string(a.body), "evt_") {
		t.Errorf("of a tenant: %s", a.body)
	}
	if a := r.get("/v1/events?from=2999-01-01T00:00:00Z").is(200); string(a.body) != `{"events":[]}`+"\n" {
		t.Errorf("from then: %s", a.body)
	}
	r.get("/v1/events?type=inv*").refuses(422, "type", "")
	r.get("/v1/events?after=x").refuses(422, "after", "")
	r.get("/v1/events?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z").refuses(422, "to", "")
}

func TestBadEventsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *webhookapi.Config) { c.MaxEvent = 1000 })
	for name, tt := range map[string]struct {
		body, field, says string
		status            int
	}{
		"no type":        {`{"payload":1}`, "type", "use 1 to", 422},
		"bad type":       {`{"type":"a b","payload":1}`, "type", "letters", 422},
		"no payload":     {`{"type":"a"}`, "payload", "is missing", 422},
		"bad id":         {`{"type":"a","id":"a.b","payload":1}`, "id", "dots", 422},
		"bad tenant":     {`{"type":"a","tenant":"a b","payload":1}`, "tenant", "spaces", 422},
		"unknown field":  {`{"type":"a","payload":1,"Payload":2}`, "Payload", "is unknown", 422},
		"twice":          {`{"type":"a","payload":1,"payload":2}`, "payload", "twice", 422},
		"payload large":  {`{"type":"a","payload":"` + strings.Repeat("x", 1000) + `"}`, "", "at most 1000 bytes here: raise webhook.max_event", 413},
		"body large":     {`{"type":"a","payload":"` + strings.Repeat("x", 9000) + `"}`, "", "webhook.max_event", 413},
		"payload broken": {`{"type":"a","payload":{"a":}}`, "", "not JSON", 422},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.post("/v1/events", tt.body)
			a.t = t
			a.refuses(tt.status, tt.field, tt.says)
		})
	}
	r.do(request{method: "POST", path: "/v1/events", body: "a=b", header: http.Header{"Content-Type": {"text/plain"}}}).refuses(415, "", "Caisson-Event-Type")
	if n := r.ready(); n != 0 {
		t.Errorf("%d jobs were made of refused events", n)
	}
}

// An event is published to an endpoint that this worker cannot read, too: its delivery waits for one that can.
func TestPublishWithoutTheKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	elsewhere := got(endpoints.NewRegistry(endpoints.RegistryConfig{Store: r.store, Keys: got(endpoints.ParseKeyring(endpoints.NewKey()))(t)}))(t)
	got(elsewhere.Add(t.Context(), webhook.Endpoint{ID: "sealed", URL: "https://example.com/", Events: []string{"invoice.*"}}))(t)
	r.seen(1)
	const event = `{"id":"evt_1","type":"invoice.paid","payload":1}`
	if a := r.post("/v1/events", event).is(http.StatusAccepted); !strings.Contains(string(a.body), `"endpoints":1`) {
		t.Errorf("answered %s", a.body)
	}
	if a := r.post("/v1/events", `{"type":"user.created","payload":1}`).is(http.StatusAccepted); !strings.Contains(string(a.body), `"endpoints":0`) {
		t.Errorf("answered %s", a.body)
	}
}
