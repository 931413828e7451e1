package webhookapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
)

const shop = `{"id":"shop","url":"https://shop.example.com/hooks/tok_3f9a?key=s3cr3t","events":["invoice.*"],"headers":{"X-Api-Key":"k-98765"},
	"timeout":"10s","concurrency":2,"rate":2.5,"backoff":"fixed(10s, 1m)","metadata":{"owner":"ann"},"tenant":"acme"}`

// What was written is shown, but for what may be secret.
func TestEndpointIsShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	made := r.post("/v1/endpoints", shop).is(http.StatusCreated)
	var e webhookapi.NewEndpoint
	made.into(&e)
	if _, err := signature.ParseSecret(e.Secret); err != nil {
		t.Errorf("secret: %v", err)
	}
	if made.header.Get("Location") != "/v1/endpoints/shop" || made.header.Get("ETag") == "" {
		t.Errorf("headers %v", made.header)
	}
	want := e.Endpoint
	want.ID, want.Tenant, want.Origin, want.Events, want.Headers = "shop", "acme", "https://shop.example.com", []string{"invoice.*"}, []string{"X-Api-Key"}
	want.ClientErrors, want.Timeout, want.Concurrency, want.Rate, want.Backoff = "retry", "10s", 2, 2.5, "fixed(10s, 1m, x0.8..1.2)"
	want.State, want.Metadata, want.Signing = "active", map[string]string{"owner": "ann"}, webhookapi.Signing{Keys: 1}
	if diff := cmp.Diff(want, e.Endpoint); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var shown webhookapi.Endpoint
	one := r.get("/v1/endpoints/shop").is(http.StatusOK).into(&shown)
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if one.header.Get("ETag") != made.header.Get("ETag") {
		t.Errorf("ETag %s, made with %s", one.header.Get("ETag"), made.header.Get("ETag"))
	}
	for _, path := range []string{"/v1/endpoints/shop", "/v1/endpoints", "/v1/endpoints/shop/health", "/v1/endpoints/shop/attempts"} {
		for _, secret := range []string{"tok_3f9a", "s3cr3t", "k-98765", strings.TrimPrefix(e.Secret, "whsec_")} {
			if body := r.get(path).is(http.StatusOK).body; strings.Contains(string(body), secret) {
				t.Errorf("%s shows %q:\n%s", path, secret, body)
			}
		}
	}
}

// A request is refused whole, with each field that is wrong and the way out.
func TestBadEndpointsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(`{"id":"taken","url":"https://example.com/"}`)
	for name, tt := range map[string]struct {
		body, field, says string
		status            int
	}{
		"unknown field":     {`{"id":"a","url":"https://example.com","colour":"red"}`, "colour", "is unknown: fields are", 422},
		"earlier name":      {`{"id":"a","url":"https://example.com","schedule":"fixed(1s)"}`, "schedule", "is called backoff now", 422},
		"other case":        {`{"ID":"a","url":"https://example.com"}`, "ID", "is unknown", 422},
		"field twice":       {`{"id":"a","id":"b","url":"https://example.com"}`, "id", "given twice", 422},
		"no object":         {`[]`, "", "must be a JSON object", 422},
		"cut off":           {`{"id":"a"`, "", "complete JSON", 422},
		"not JSON":          {`{id:1}`, "", "not JSON", 422},
		"two objects":       {`{"id":"a","url":"https://example.com"} {}`, "", "behind the JSON object", 422},
		"not UTF-8":         {"{\"id\":\"\xff\"}", "", "UTF-8", 422},
		"wrong type":        {`{"id":7,"url":"https://example.com"}`, "id", "must be a text", 422},
		"part of a number":  {`{"id":"a","url":"https://example.com","concurrency":1.5}`, "concurrency", "whole number", 422},
		"bare duration":     {`{"id":"a","url":"https://example.com","timeout":"10"}`, "timeout", "", 422},
		"long timeout":      {`{"id":"a","url":"https://example.com","timeout":"27s"}`, "timeout", "use at most 26s", 422},
		"no id":             {`{"url":"https://example.com"}`, "id", "use 1 to", 422},
		"bad id":            {`{"id":"A B","url":"https://example.com"}`, "id", "lower-case", 422},
		"no url":            {`{"id":"a"}`, "url", "", 422},
		"http":              {`{"id":"a","url":"http://example.com"}`, "url", "allow_http", 422},
		"metadata address":  {`{"id":"a","url":"https://169.254.169.254/latest"}`, "url", "", 422},
		"pattern":           {`{"id":"a","url":"https://example.com","events":["*.paid"]}`, "events", "pattern", 422},
		"reserved header":   {`{"id":"a","url":"https://example.com","headers":{"Host":"x"}}`, "headers", "reserved", 422},
		"header of numbers": {`{"id":"a","url":"https://example.com","headers":{"X-A":1}}`, "headers.X-A", "must be a text", 422},
		"tls":               {`{"id":"a","url":"https://example.com","tls":{"certificat":"x"}}`, "tls.certificat", "is unknown", 422},
		"tls key alone":     {`{"id":"a","url":"https://example.com","tls":{"key":"x"}}`, "tls", "", 422},
		"secret":            {`{"id":"a","url":"https://example.com","secret":"whsec_x"}`, "secret", "base64", 422},
		"state":             {`{"id":"a","url":"https://example.com","state":"paused"}`, "state", "is unknown", 422},
		"several":           {`{"id":"A","url":"ftp://example.com","rate":-1}`, "rate", "scheme", 422},
		"taken":             {`{"id":"taken","url":"https://example.com"}`, "", "PATCH", 409},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.post("/v1/endpoints", tt.body)
			a.t = t
			a.refuses(tt.status, tt.field, tt.says)
		})
	}
	var list struct{ Endpoints []webhookapi.Endpoint }
	if r.get("/v1/endpoints").into(&list); len(list.Endpoints) != 1 {
		t.Errorf("%d endpoints, want the first alone", len(list.Endpoints))
	}
}

// Problems quote no secret, whatever is wrong with it.
func TestProblemsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, body := range []string{
		`{"id":"a","url":"https://user:hunter2@example.com/"}`,
		`{"id":"a","url":"ftp://example.com/hunter2"}`,
		`{"id":"a","url":"https://example.com/hunter2 x"}`,
		`{"id":"a","url":"https://example.com/","secret":"hunter2"}`,
		`{"id":"a","url":"https://example.com/","secret":"whsec_hunter2"}`,
		`{"id":"a","url":"https://example.com/","headers":{"X-A":"hunter2\n"}}`,
		`{"id":"a","url":"https://example.com/","tls":{"certificate":"hunter2","key":"hunter2"}}`,
		`{"id":"a","url":"https://example.com/","secret":"hunter2"`,
	} {
		a := r.post("/v1/endpoints", body).is(http.StatusUnprocessableEntity)
		if strings.Contains(string(a.body), "hunter2") {
			t.Errorf("%s\nis answered with\n%s", body, a.body)
		}
	}
}

// PATCH merges: what is left out stays, null is the default, headers and metadata go name by name.
func TestPatchMerges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(shop)
	var e webhookapi.Endpoint
	r.do(request{
		method: "PATCH", path: "/v1/endpoints/shop", header: http.Header{"Content-Type": {"application/merge-patch+json"}},
		body: `{"rate":null,"events":["a.b","c.*"],"headers":{"x-api-key":null,"X-New":"1"},"metadata":{"owner":"bob","team":"x"},"ordered":true}`,
	}).is(200).into(&e)
	if e.Rate != 0 || e.Timeout != "10s" || e.Tenant != "acme" || !e.Ordered || e.Concurrency != 2 {
		t.Errorf("%+v", e)
	}
	if diff := cmp.Diff([]string{"X-New"}, e.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"owner": "bob", "team": "x"}, e.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	kept := got(r.registry.Get(t.Context(), "shop"))(t)
	if kept.URL != "https://shop.example.com/hooks/tok_3f9a?key=s3cr3t" || kept.Headers["X-New"] != "1" {
		t.Errorf("kept %q %v", kept.URL, kept.Headers)
	}
	for field, body := range map[string]string{
		"id": `{"id":"other"}`, "secret": `{"secret":"whsec_x"}`, "state": `{"state":"paused"}`, "url": `{"url":null}`, "concurrency": `{"concurrency":-1}`, "nope": `{"nope":1}`,
	} {
		r.do(request{method: "PATCH", path: "/v1/endpoints/shop", body: body}).refuses(422, field, "")
	}
	r.do(request{method: "PATCH", path: "/v1/endpoints/nobody", body: `{"rate":1}`}).refuses(404, "", "no endpoint")
}

// A change for a revision that is over is refused, and changes nothing.
func TestChangesMeetNoOtherUnseen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := r.post("/v1/endpoints", shop).is(201).header.Get("ETag")
	patch := func(ifMatch, body string) answer {
		return r.do(request{method: "PATCH", path: "/v1/endpoints/shop", body: body, header: http.Header{"If-Match": {ifMatch}}})
	}
	now := patch(old, `{"rate":1}`).is(200).header.Get("ETag")
	if now == old {
		t.Fatal("the ETag has not changed")
	}
	patch(old, `{"rate":2}`).refuses(412, "", "read it again")
	r.do(request{method: "DELETE", path: "/v1/endpoints/shop", header: http.Header{"If-Match": {old}}}).refuses(412, "", "read it again")
	for _, bad := range []string{"7", `W/"7"`, `""`, `"x"`} {
		patch(bad, `{"rate":3}`).refuses(422, "If-Match", "ETag")
	}
	r.do(request{method: "POST", path: "/v1/endpoints/shop/pause", header: http.Header{"If-Match": {now}}}).refuses(422, "If-Match", "")
	var e webhookapi.Endpoint
	if r.get("/v1/endpoints/shop").into(&e); e.Rate != 1 || e.State != "active" {
		t.Errorf("rate %v, state %s", e.Rate, e.State)
	}
	patch("*", `{"rate":4}`).is(200)
	r.do(request{method: "DELETE", path: "/v1/endpoints/shop"}).is(204)
	r.get("/v1/endpoints/shop").refuses(404, "", "")
	r.do(request{method: "DELETE", path: "/v1/endpoints/shop"}).refuses(404, "", "")
}

// Lists come in pages and go by tenant and state.
func TestListPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"e", "b", "d", "a", "c"} {
		tenant := "odd"
		if id == "b" || id == "d" {
			tenant = "even"
		}
		r.add(`{"id":"` + id + `","url":"https://example.com/","tenant":"` + tenant + `"}`)
	}
	r.post("/v1/endpoints/c/pause", "").is(200)
	list := func(query string) (ids []string, next string) {
		var page struct {
			Endpoints []webhookapi.Endpoint
			Next      string
		}
		r.get("/v1/endpoints" + query).is(200).into(&page)
		for _, e := range page.Endpoints {
			ids = append(ids, e.ID)
		}
		return ids, page.Next
	}
	var all []string
	for after := ""; ; {
		ids, next := list("?limit=2&after=" + after)
		if all = append(all, ids...); next == "" {
			break
		}
		after = next
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ids, _ := list("?tenant=even"); !cmp.Equal(ids, []string{"b", "d"}) {
		t.Errorf("of the tenant: %v", ids)
	}
	if ids, _ := list("?state=paused"); !cmp.Equal(ids, []string{"c"}) {
		t.Errorf("paused: %v", ids)
	}
	for query, field := range map[string]string{
		"?limit=0": "limit", "?limit=1001": "limit", "?limit=x": "limit", "?state=odd": "state", "?page=2": "page", "?limit=1&limit=2": "limit",
	} {
		r.get("/v1/endpoints"+query).refuses(422, field, "")
	}
}

// An endpoint that is sealed with a key that is not given hides no other one.
func TestUnreadableEndpoints(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(`{"id":"a","url":"https://example.com/"}`)
	foreign := got(endpoints.NewRegistry(endpoints.RegistryConfig{Store: r.store, Keys: got(endpoints.ParseKeyring(endpoints.NewKey()))(t)}))(t)
	got(foreign.Add(t.Context(), webhook.Endpoint{ID: "b", URL: "https://example.com/"}))(t)
	var page struct{ Endpoints []webhookapi.Endpoint }
	r.get("/v1/endpoints").is(200).into(&page)
	if len(page.Endpoints) != 2 || page.Endpoints[0].Unreadable || !page.Endpoints[1].Unreadable {
		t.Errorf("%+v", page)
	}
	r.get("/v1/endpoints/b").refuses(500, "", "webhook.old_secret_keys")
}
