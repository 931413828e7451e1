package webhook

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestObservedAttempt: what an observer is told can be kept and shown, whatever the receiver echoes.
func TestObservedAttempt(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set([]string{"Cf-Ray", "X-Request-Id"}[n%2], "id for "+r.Header.Get("X-Api-Key")+"\t1 "+strings.Repeat("x", 500))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("you sent\r\n" + r.Header.Get("X-Api-Key") + " to " + r.URL.Path + "\x00"))
	})
	e := endpointAt("shop", rec.URL+"/hooks/token-123456")
	e.Headers = map[string]string{"X-Api-Key": "secret-key-1"}
	var seen []Attempt
	s := newSender(t, Config{Endpoints: static(t, e), Observe: func(a Attempt) { seen = append(seen, a) }})
	for range 2 {
		if err := s.deliver(t.Context(), jobFor("shop")); err == nil {
			t.Error("a 418 is a success")
		}
	}
	for i, got := range seen {
		if age := time.Since(got.At); age < 0 || age > time.Minute || got.Response.Status != http.StatusTeapot {
			t.Errorf("ended %s ago with %d", age, got.Response.Status)
		}
		got.Response, got.At, got.url = Response{}, time.Time{}, ""
		want := Attempt{
			Endpoint: "shop", Event: "job1", Job: "job1", Number: 1, Tenant: DefaultTenant, Excerpt: "you sent [left out] to [left out]",
			RequestID: ("id for [left out] 1 " + strings.Repeat("x", 500))[:128],
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Response{}, Attempt{})); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i, diff)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d attempts were observed", len(seen))
	}
}

// TestObservedSilence: why no response came, without addresses that are nobody's business.
func TestObservedSilence(t *testing.T) {
	t.Parallel()
	raw := newRawServer(t, cut("HTTP/9.9 whatever /hooks/token-123456\r\n\r\n"), silence)
	e := endpointAt("shop", raw.url+"/hooks/token-123456")
	var seen []Attempt
	s := newSender(t, Config{Endpoints: static(t, e), Observe: func(a Attempt) { seen = append(seen, a) }})
	if err := s.deliver(t.Context(), jobFor("shop")); err == nil {
		t.Error("no HTTP is a success")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.deliver(ctx, jobFor("shop")); err == nil {
		t.Error("silence is a success")
	}
	if len(seen) != 2 || seen[0].Err == "" || strings.Contains(seen[0].Err, "token") || seen[0].CutOff {
		t.Errorf("%+v", seen)
	}
	if got := seen[1]; !got.CutOff || got.Err != context.DeadlineExceeded.Error() {
		t.Errorf("a call that was cut off: %+v", got)
	}
	s.observe(t.Context(), e, Delivery{ID: "evt_1"}, jobFor("shop"), Response{Err: &quotedError{"dial 10.1.2.3: refused", ErrBlocked}}, false)
	if got := seen[2].Err; got != ErrBlocked.Error() {
		t.Errorf("a blocked address: %q", got)
	}
}
