package webhookapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"go.uber.org/goleak"

	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/queue/embedded"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	endpointsqlite "github.com/caisson-go/caisson/webhook/endpoints/sqlite"
	"github.com/caisson-go/caisson/webhook/journal"
	journalsqlite "github.com/caisson-go/caisson/webhook/journal/sqlite"
	"github.com/caisson-go/caisson/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// described is openapi.yaml, and finds the route of a request in it.
var described, routes = func() (*openapi3.T, routers.Router) {
	document, err := openapi3.NewLoader().LoadFromData(webhookapi.Description)
	if err != nil {
		panic(err)
	}
	document.Servers = nil // tests ask any host
	openapi3filter.RegisterBodyDecoder("application/xml", openapi3filter.FileBodyDecoder)
	router, err := gorillamux.NewRouter(document)
	if err != nil {
		panic(err)
	}
	return document, router
}()

// strict holds requests and answers against all of the description but who may ask.
var strict = &openapi3filter.Options{
	IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true, MultiError: true, SkipSettingDefaults: true,
	AuthenticationFunc:      openapi3filter.NoopAuthenticationFunc,
	SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.EnableJSONSchema2020(), openapi3.EnableFormatValidation()},
}

// rig is an API on real stores and a real broker.
type rig struct {
	t        *testing.T
	handler  http.Handler
	registry *endpoints.Registry
	mirror   *endpoints.Mirror
	journal  journal.Store
	broker   *embedded.Broker
	store    endpoints.Store
}

func newRig(t *testing.T, edit ...func(*webhookapi.Config)) *rig {
	t.Helper()
	r := &rig{t: t}
	r.broker = got(embedded.Open(t.Context(), embedded.Config{Path: ":memory:"}))(t)
	t.Cleanup(func() { must(t, r.broker.Close()) })
	must(t, r.broker.CreateQueue(t.Context(), worker.DefaultQueue))
	guard := got(webhook.NewGuard(webhook.GuardConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AnyPort: true}))(t)
	store := got(endpointsqlite.Open(t.Context(), endpointsqlite.Config{Path: r.broker.Path()}))(t)
	t.Cleanup(func() { must(t, store.Close()) })
	r.registry = got(endpoints.NewRegistry(endpoints.RegistryConfig{
		Store: store, Keys: got(endpoints.ParseKeyring(endpoints.NewKey()))(t), Guard: guard,
	}))(t)
	events := got(journalsqlite.Open(t.Context(), journalsqlite.Config{Path: r.broker.Path()}))(t)
	t.Cleanup(func() { must(t, events.Close()) })
	r.store, r.journal = store, events
	r.mirror = got(endpoints.NewMirror(endpoints.MirrorConfig{Registry: r.registry, Interval: time.Millisecond}))(t)
	r.run(r.mirror.Run)
	<-r.mirror.Loaded()
	client := got(worker.NewClient(worker.ClientConfig{Broker: r.broker}))(t)
	sender := got(webhook.NewSender(webhook.Config{Endpoints: r.mirror, Guard: guard}))(t)
	t.Cleanup(sender.Close)
	cfg := webhookapi.Config{
		Registry: r.registry, Guard: guard, Journal: r.journal, Sender: sender,
		Publisher: got(webhook.NewPublisher(webhook.PublisherConfig{Client: client, Subscribers: r.mirror, Events: r.journal}))(t),
		Recovery:  got(journal.NewRecovery(journal.RecoveryConfig{Store: r.journal, Client: client}))(t),
	}
	for _, f := range edit {
		f(&cfg)
	}
	r.handler = got(webhookapi.New(cfg))(t)
	return r
}

// run runs something until the test ends.
func (r *rig) run(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		must(r.t, <-ended)
	})
}

// request is one request. A body that is a string is JSON.
type request struct {
	method, path, body string
	header             http.Header
}

// answer is what came back.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// do makes a request, and holds both it and the answer against the description: what the description does not allow must be refused, and every
// answer must be as described.
func (r *rig) do(q request) answer {
	r.t.Helper()
	make := func() *http.Request {
		req := httptest.NewRequestWithContext(r.t.Context(), q.method, q.path, strings.NewReader(q.body))
		if q.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		for name, values := range q.header {
			req.Header[name] = values
		}
		return req
	}
	recorder := httptest.NewRecorder()
	r.handler.ServeHTTP(recorder, make())
	res := recorder.Result()
	body := got(io.ReadAll(res.Body))(r.t)
	res.Body = io.NopCloser(bytes.NewReader(body))
	route, params, err := routes.FindRoute(make())
	if err != nil {
		if res.StatusCode < 400 {
			r.t.Errorf("%s %s was done, and the description does not have it: %v", q.method, q.path, err)
		}
		return answer{r.t, res.StatusCode, res.Header, body}
	}
	input := &openapi3filter.RequestValidationInput{Request: make(), PathParams: params, Route: route, Options: strict}
	if err := openapi3filter.ValidateRequest(r.t.Context(), input); err != nil && res.StatusCode < 400 {
		r.t.Errorf("%s %s was done, and the description does not allow it: %v", q.method, q.path, err)
	}
	if known := res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusMethodNotAllowed; known && res.Header.Get("Content-Type") != "application/yaml" {
		output := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: res.StatusCode, Header: res.Header, Options: strict}
		if err := openapi3filter.ValidateResponse(r.t.Context(), output.SetBodyBytes(body)); err != nil {
			r.t.Errorf("answer %d to %s %s is not as described: %v\n%s", res.StatusCode, q.method, q.path, err, body)
		}
	}
	return answer{r.t, res.StatusCode, res.Header, body}
}

func (r *rig) get(path string) answer { return r.do(request{method: "GET", path: path}) }

func (r *rig) post(path, body string) answer {
	return r.do(request{method: "POST", path: path, body: body})
}

// is fails the test unless the status is the one.
func (a answer) is(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d\n%s", a.status, status, a.body)
	}
	return a
}

// into reads the body.
func (a answer) into(v any) answer {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("%v\n%s", err, a.body)
	}
	return a
}

// refuses fails the test unless the answer is a problem with that status that is about the field and says that.
func (a answer) refuses(status int, field, says string) {
	a.t.Helper()
	var p webhookapi.Problem
	a.is(status).into(&p)
	if got := a.header.Get("Content-Type"); got != "application/problem+json" || p.Status != status {
		a.t.Errorf("a problem of type %s with status %d, want application/problem+json and %d", got, p.Status, status)
	}
	if !strings.Contains(p.Detail, says) {
		a.t.Errorf("detail %q does not say %q", p.Detail, says)
	}
	for _, e := range p.Errors {
		if e.Field == field {
			return
		}
	}
	if field != "" {
		a.t.Errorf("no error about %q in %+v", field, p.Errors)
	}
}

// add adds an endpoint and returns it.
func (r *rig) add(body string) webhookapi.NewEndpoint {
	r.t.Helper()
	var e webhookapi.NewEndpoint
	r.post("/v1/endpoints", body).is(http.StatusCreated).into(&e)
	return e
}

// got returns what a constructor returned, or ends the test.
func got[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
