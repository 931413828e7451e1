package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answering is an API that says what it was asked.
var answering = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, r.Method+" "+r.URL.Path)
})

// The API is for those with credentials, and takes every method; the pages beside it stay read-only.
func TestAPIAsksForCredentials(t *testing.T) {
	t.Parallel()
	url := start(t, Config{User: "ops", Password: "secret", API: answering})
	own := func(r *http.Request) { r.SetBasicAuth("ops", "secret") }
	for _, method := range []string{"GET", "POST", "PATCH", "DELETE"} {
		if status, _, body := ask(t, method, url+"/v1/endpoints/a", own); status != 200 || body != method+" /v1/endpoints/a" {
			t.Errorf("%s: %d %q", method, status, body)
		}
		for name, edit := range map[string]func(*http.Request){
			"nobody": nil, "wrong password": func(r *http.Request) { r.SetBasicAuth("ops", "Secret") }, "wrong user": func(r *http.Request) { r.SetBasicAuth("op", "secret") },
		} {
			status, header, body := ask(t, method, url+"/v1/endpoints/a", edit)
			if status != 401 || strings.Contains(body, "/v1/") || !isProblem(header, body, 401) || header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s of %s: %d %q", method, name, status, body)
			}
		}
	}
	if status, _, _ := ask(t, "POST", url+"/readyz", own); status != http.StatusMethodNotAllowed {
		t.Errorf("POST /readyz: %d", status)
	}
	for _, path := range []string{"/v2/", "/v1x"} { // none of them leads to the API
		if status, _, body := ask(t, "POST", url+path, own); status == 200 {
			t.Errorf("POST %s: %d %q", path, status, body)
		}
	}
}

// Without credentials there is no API, on the loopback neither.
func TestNoAPIWithoutCredentials(t *testing.T) {
	t.Parallel()
	url := start(t, Config{API: answering})
	for _, method := range []string{"GET", "POST"} {
		status, header, body := ask(t, method, url+"/v1/endpoints", nil)
		if status != http.StatusForbidden || !isProblem(header, body, 403) || !strings.Contains(body, "admin.user and admin.password") {
			t.Errorf("%s: %d %q", method, status, body)
		}
	}
	url = start(t, Config{User: "ops", Password: "secret"})
	if status, _, _ := ask(t, "GET", url+"/v1/endpoints", func(r *http.Request) { r.SetBasicAuth("ops", "secret") }); status != http.StatusNotFound {
		t.Errorf("where there is none: %d", status)
	}
}

// isProblem reports whether an answer is as openapi.yaml describes refusals.
func isProblem(header http.Header, body string, status int) bool {
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	err := json.Unmarshal([]byte(body), &p)
	return err == nil && header.Get("Content-Type") == "application/problem+json" && p.Status == status && p.Type != "" && p.Title != "" && p.Detail != ""
}
