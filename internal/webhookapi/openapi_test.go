package webhookapi_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/caisson-go/caisson/internal/webhookapi"
)

// The description is valid OpenAPI, and describes each route and nothing else.
func TestDescriptionHasTheRoutes(t *testing.T) {
	t.Parallel()
	if err := described.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	var document struct {
		Paths map[string]map[string]yaml.Node
	}
	must(t, yaml.Unmarshal(webhookapi.Description, &document))
	var inDocument []string
	for path, item := range document.Paths {
		for method := range item {
			if method != "parameters" {
				inDocument = append(inDocument, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(inDocument)
	if diff := cmp.Diff(webhookapi.Routes(), inDocument); diff != "" {
		t.Errorf("(-routes +description):\n%s", diff)
	}
}

func TestDescriptionIsServed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.get("/v1/openapi.yaml").is(200)
	if !bytes.Equal(a.body, webhookapi.Description) || a.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%s: %.100s", a.header.Get("Content-Type"), a.body)
	}
}

// What no route is for is a problem, too, and so is what a page of another site has a browser send.
func TestOutsideRequestsAreProblems(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.get("/v1/nothing").refuses(404, "", "openapi.yaml")
	r.get("/v1/endpoints/").refuses(404, "", "openapi.yaml")
	a := r.do(request{method: "PUT", path: "/v1/endpoints"})
	a.refuses(405, "", "Allow")
	if allow := a.header.Get("Allow"); allow != "GET, HEAD, POST" {
		t.Errorf("Allow: %q", allow)
	}
	r.add(`{"id":"shop","url":"https://example.com/"}`)
	for name, header := range map[string]http.Header{
		"fetch metadata": {"Sec-Fetch-Site": {"cross-site"}}, "origin": {"Origin": {"https://evil.example"}}, "same site": {"Sec-Fetch-Site": {"same-site"}},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/endpoints/shop/pause", nil)
			for k, v := range header {
				req.Header[k] = v
			}
			w := httptest.NewRecorder()
			r.handler.ServeHTTP(w, req)
			if w.Code != http.StatusForbidden || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	var e webhookapi.Endpoint
	if r.get("/v1/endpoints/shop").into(&e); e.State != "active" {
		t.Errorf("it is %s", e.State)
	}
	for _, wrong := range []http.Header{{"Content-Type": {"text/plain"}}, {"Content-Type": {"application/x-www-form-urlencoded"}}, {"Content-Type": {""}}} {
		r.do(request{method: "POST", path: "/v1/endpoints", body: `{}`, header: wrong}).refuses(415, "", "application/json")
	}
	r.post("/v1/endpoints", `{"id":"`+strings.Repeat("x", 70_000)+`"}`).refuses(413, "", "65536")
}
