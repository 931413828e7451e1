package webhookapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
)

// A test delivery is signed, goes through the guard, and shows what came back without what it echoes.
func TestTestDelivery(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var verifier *standardwebhooks.Webhook
	var bodies []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := got(io.ReadAll(req.Body))(t)
		if err := verifier.Verify(body, req.Header); err != nil {
			t.Errorf("signature: %v", err)
		}
		bodies = append(bodies, string(body))
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "no %s at %s", req.Header.Get("X-Api-Key"), req.URL.Path)
	}))
	t.Cleanup(receiver.Close)
	made := r.add(`{"id":"shop","url":"` + receiver.URL + `/tok_98765","allow_http":true,"headers":{"X-Api-Key":"k-98765"}}`)
	verifier = got(standardwebhooks.NewWebhook(made.Secret))(t)
	r.post("/v1/endpoints/shop/disable", "").is(200)
	var result webhookapi.TestResult
	r.post("/v1/endpoints/shop/test", `{"payload":{ "a":1.0 }}`).is(200).into(&result)
	if result.Delivered || result.Status != 418 || result.Phase != "answered" || result.Duration <= 0 || result.Excerpt != "no [left out] at [left out]" {
		t.Errorf("%+v", result)
	}
	r.post("/v1/endpoints/shop/test", "").is(200)
	if len(bodies) != 2 || bodies[0] != `{ "a":1.0 }` || !strings.Contains(bodies[1], `"webhook.test"`) {
		t.Errorf("bodies %q", bodies)
	}
	receiver.Close()
	var nobody webhookapi.TestResult
	r.post("/v1/endpoints/shop/test", "").is(200).into(&nobody)
	if nobody.Delivered || nobody.Status != 0 || !strings.Contains(nobody.Error, "connection refused") {
		t.Errorf("nobody there: %+v", nobody)
	}
}

// The guard cannot be passed by a test delivery: a name that leads inside is refused when it is dialled, and says nothing about where it leads.
func TestTestDeliveryIsGuarded(t *testing.T) {
	t.Parallel()
	strict := got(webhook.NewGuard(webhook.GuardConfig{}))(t)
	r := newRig(t, func(c *webhookapi.Config) {
		c.Sender.Close()
		c.Sender = got(webhook.NewSender(webhook.Config{Endpoints: got(webhook.NewStatic(strict))(t), Guard: strict}))(t)
		t.Cleanup(c.Sender.Close)
	})
	r.add(`{"id":"inside","url":"http://127.0.0.1:9/","allow_http":true}`) // the registry's guard allows it, the sender's does not
	r.post("/v1/endpoints/inside/test", "").refuses(422, "url", "")
}

// The log of attempts comes in pages, and goes by event, failure and time.
func TestAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(`{"id":"shop","url":"https://example.com/"}`)
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	var log []journal.Attempt
	for i := range 5 {
		log = append(log, journal.Attempt{
			Tenant: "default", Endpoint: "shop", Event: fmt.Sprint("evt_", i/2), Job: "j", Number: i%2 + 1, At: start.Add(time.Duration(i) * time.Minute),
			Status: []int{500, 200}[i%2], Phase: webhook.PhaseAnswered.String(), Duration: time.Millisecond, Excerpt: "hello", RequestID: "r-1",
		})
	}
	must(t, r.journal.Log(t.Context(), log))
	ask := func(query string) (at []int, next string) {
		var page struct {
			Attempts []journal.Attempt
			Next     string
		}
		r.get("/v1/endpoints/shop/attempts" + query).is(200).into(&page)
		for _, a := range page.Attempts {
			at = append(at, int(a.At.Sub(start).Minutes()))
		}
		return at, page.Next
	}
	var all []int
	for after := ""; ; {
		page, next := ask("?limit=2&after=" + after)
		if all = append(all, page...); next == "" {
			break
		}
		after = next
	}
	for query, want := range map[string][]int{
		"?failed=true": {4, 2, 0}, "?event=evt_1": {3, 2}, "?from=2026-08-01T12:03:00Z": {4, 3}, "?to=2026-08-01T12:01:00Z": {0}, "?failed=false": {4, 3, 2, 1, 0},
	} {
		if at, _ := ask(query); fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", query, at, want)
		}
	}
	if fmt.Sprint(all) != "[4 3 2 1 0]" {
		t.Errorf("in pages: %v", all)
	}
	for query, field := range map[string]string{
		"?failed=yes": "failed", "?from=today": "from", "?to=x": "to", "?after=!": "after", "?from=2026-08-02T00:00:00Z&to=2026-08-01T00:00:00Z": "to", "?q=1": "q",
	} {
		r.get("/v1/endpoints/shop/attempts"+query).refuses(422, field, "")
	}
	r.get("/v1/endpoints/nobody/attempts").refuses(404, "", "")
}

// Resend makes a delivery of what was delivered, recover of what was not.
func TestSendAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(`{"id":"shop","url":"https://example.com/","events":["a"]}`)
	r.seen(1)
	for _, id := range []string{"done", "failed", "untried"} {
		r.post("/v1/events", `{"id":"`+id+`","type":"a","payload":1}`).is(202)
	}
	r.post("/v1/events", `{"id":"unwanted","type":"b","payload":1}`).is(202)
	attempt := journal.Attempt{Tenant: "default", Endpoint: "shop", Event: "done", Job: "j", Number: 1, At: time.Now(), Status: 200, Phase: "answered"}
	failed := attempt
	failed.Event, failed.Status = "failed", 500
	must(t, r.journal.Log(t.Context(), []journal.Attempt{attempt, failed}))
	const before = 3
	eventually.True(t, "the jobs of the events", func() bool { return r.ready() == before })
	var recovered webhookapi.Recovered
	if r.post("/v1/endpoints/shop/recover", `{"since":"1h"}`).is(202).into(&recovered); recovered != (webhookapi.Recovered{Events: 3, Missed: 1}) {
		t.Errorf("recovered %+v, want one of three", recovered)
	}
	eventually.True(t, "one job more", func() bool { return r.ready() == before+1 })
	r.post("/v1/endpoints/shop/recover", `{"since":"0s"}`).is(202).into(&recovered)
	if recovered != (webhookapi.Recovered{}) {
		t.Errorf("recovered %+v of no time", recovered)
	}
	var job struct{ Job string }
	if r.post("/v1/endpoints/shop/resend", `{"event":"done"}`).is(202).into(&job); job.Job == "" {
		t.Error("resent as no job")
	}
	eventually.True(t, "one job more", func() bool { return r.ready() == before+2 })
	r.post("/v1/endpoints/shop/resend", `{"event":"nothing"}`).refuses(404, "", "not published")
	r.post("/v1/endpoints/shop/resend", `{}`).refuses(422, "event", "is missing")
	r.post("/v1/endpoints/nobody/resend", `{"event":"done"}`).refuses(404, "", "no endpoint")
	for body, field := range map[string]string{
		`{}`: "since", `{"since":"tomorrow"}`: "since", `{"since":"2999-01-01T00:00:00Z"}`: "since", `{"since":"1h","until":"2h"}`: "until", `{"since":null}`: "since",
	} {
		r.post("/v1/endpoints/shop/recover", body).refuses(422, field, "")
	}
}
