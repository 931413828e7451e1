package webhook

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

func jobFor(endpoint string) *worker.Job {
	return &worker.Job{ID: "job1", Kind: KindDeliver, Destination: endpoint, Payload: []byte("{}"), Attempt: 1, EnqueuedAt: time.Now()}
}

// TestRedirects: never followed, whatever the code and wherever it leads; a failed delivery with its code kept.
func TestRedirects(t *testing.T) {
	t.Parallel()
	other := newReceiver(t, status(http.StatusOK))
	for code, target := range map[int]string{
		301: "http://169.254.169.254/latest/meta-data/", 302: "/login", 303: other.URL, 307: other.URL + "/x", 308: other.URL, 300: "/a", 304: "",
	} {
		rec := newReceiver(t, func(w http.ResponseWriter, r *http.Request, _ int) {
			if r.URL.Path == "/login" {
				return
			}
			w.Header().Set("Location", target)
			w.WriteHeader(code)
		})
		e := endpointAt("e", rec.URL+"/hook")
		e.Headers = map[string]string{"X-Api-Key": "k1"}
		s := newSender(t, Config{Endpoints: static(t, e)})
		err := s.deliver(t.Context(), jobFor("e"))
		if diff := cmp.Diff(ignored, verdictOf(t, err)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", code, diff)
		}
		var delivery *deliveryError
		if !errors.As(err, &delivery) || delivery.Status != code {
			t.Errorf("%d: the code is lost in %v", code, err)
		}
		if seen := rec.requests(); len(seen) != 1 || seen[0].header.Get("X-Api-Key") != "k1" {
			t.Errorf("%d: %d requests to the endpoint", code, len(seen))
		}
	}
	if n := len(other.requests()); n != 0 {
		t.Errorf("%d requests reached another origin", n)
	}
}

// TestSignedBytesAreSentBytes: the wire carries the payload as it was enqueued, each try with a signature of its own time.
func TestSignedBytesAreSentBytes(t *testing.T) {
	t.Parallel()
	body := "{ \"b\":\"a&b<c>\", \"a\":1.0, \"z\":\"\xe2\x80\xa8\" }"
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	e := endpointAt("e", rec.URL+"/hook?a=b%20c")
	verifier, err := signature.NewVerifier(e.Secrets[0].Reveal())
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	s := newSender(t, Config{Endpoints: static(t, e), Now: func() time.Time { return now }})
	job := jobFor("e")
	job.Payload, job.Headers = []byte(body), map[string]string{signature.HeaderID: "evt_1", "traceparent": "00-a-b-01"}
	if err := s.deliver(t.Context(), job); err == nil {
		t.Fatal("a 500 is a success")
	}
	now = now.Add(6 * time.Minute)
	if err := s.deliver(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	seen := rec.requests()
	if len(seen) != 2 {
		t.Fatalf("%d requests, want 2", len(seen))
	}
	for i, r := range seen {
		at := noon.Add(time.Duration(i) * 6 * time.Minute)
		if string(r.body) != body || r.method != http.MethodPost || r.path != "/hook?a=b%20c" {
			t.Errorf("try %d: %s %s %q", i+1, r.method, r.path, r.body)
		}
		if err := verifier.Verify(r.header, r.body, at); err != nil {
			t.Errorf("try %d: %v", i+1, err)
		}
		want := map[string]string{signature.HeaderID: "evt_1", signature.HeaderTimestamp: strconv.FormatInt(at.Unix(), 10), "Content-Type": "application/json", "Traceparent": "", "Accept-Encoding": "", "Idempotency-Key": ""}
		for name, value := range want {
			if got := r.header.Get(name); got != value {
				t.Errorf("try %d: %s is %q, want %q", i+1, name, got, value)
			}
		}
		if got := r.header.Get("User-Agent"); !strings.HasPrefix(got, "caisson-webhook/") {
			t.Errorf("user agent %q", got)
		}
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		endpoint, job map[string]string
		want          string
	}{
		{nil, nil, "application/json"},
		{nil, map[string]string{"Content-Type": "text/plain"}, "text/plain"},
		{map[string]string{"content-type": "application/cloudevents+json"}, nil, "application/cloudevents+json"},
		{map[string]string{"content-type": "a/b"}, map[string]string{"content-type": "c/d"}, "c/d"},
	} {
		rec := newReceiver(t, status(http.StatusOK))
		e := endpointAt("e", rec.URL)
		e.Headers = c.endpoint
		job := jobFor("e")
		job.Headers = c.job
		if err := newSender(t, Config{Endpoints: static(t, e)}).deliver(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if got := rec.requests()[0].header.Values("Content-Type"); len(got) != 1 || got[0] != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
}

// TestGone: one 410 ends the calls to an endpoint until it has another URL or is enabled.
func TestGone(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 0 {
			w.WriteHeader(http.StatusGone)
		}
	})
	e := endpointAt("e", rec.URL+"/1")
	endpoints := static(t, e)
	s := newSender(t, Config{Endpoints: endpoints})
	for i := range 3 {
		if diff := cmp.Diff(gone, verdictOf(t, s.deliver(t.Context(), jobFor("e")))); diff != "" {
			t.Errorf("delivery %d (-want +got):\n%s", i+1, diff)
		}
	}
	if n := len(rec.requests()); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	if diff := cmp.Diff([]string{"e"}, s.Gone()); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
	s.Enable("e")
	if err := s.deliver(t.Context(), jobFor("e")); err != nil {
		t.Errorf("after Enable: %v", err)
	}
	s.gone.add(e)
	e.Since = noon // enabled in a registry
	if err := endpoints.Replace([]Endpoint{e}); err != nil {
		t.Fatal(err)
	}
	if err := s.deliver(t.Context(), jobFor("e")); err != nil || len(s.Gone()) != 0 {
		t.Errorf("enabled later: %v, still gone: %v", err, s.Gone())
	}
	s.gone.add(e)
	if diff := cmp.Diff(gone, verdictOf(t, s.deliver(t.Context(), jobFor("e")))); diff != "" {
		t.Errorf("gone again (-want +got):\n%s", diff)
	}
	e.URL = rec.URL + "/2"
	if err := endpoints.Replace([]Endpoint{e}); err != nil {
		t.Fatal(err)
	}
	if err := s.deliver(t.Context(), jobFor("e")); err != nil {
		t.Errorf("with another URL: %v", err)
	}
}

// brokenEndpoints cannot be asked.
type brokenEndpoints struct{}

func (brokenEndpoints) Get(context.Context, string) (Endpoint, error) {
	return Endpoint{}, errors.New("connection refused")
}

// unchecked hands out an endpoint as it is, like a store with rules older than ours.
type unchecked struct{ e Endpoint }

func (u unchecked) Get(context.Context, string) (Endpoint, error) { return u.e, nil }

// TestNoCall: what keeps a delivery from being made at all, and what becomes of the job.
func TestNoCall(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, status(http.StatusOK))
	e := endpointAt("e", rec.URL)
	disabled := endpointAt("off", rec.URL)
	disabled.State, disabled.Reason = StateDisabled, ReasonGone
	paused, failing := endpointAt("paused", rec.URL), endpointAt("failing", rec.URL)
	paused.State, paused.Reason = StatePaused, "migration on Sunday"
	failing.State, failing.Reason = StateDisabled, ReasonFailing
	known := static(t, e, disabled, paused, failing)
	held := verdict{Outcome: worker.OutcomeDeferred, Breaker: breaker.OutcomeIgnored, After: closedPause, Hold: true}
	waits := verdict{Outcome: worker.OutcomeDeferred, Breaker: breaker.OutcomeIgnored, After: newPause}
	waitsOn := verdict{Outcome: worker.OutcomeDeferred, Breaker: breaker.OutcomeIgnored, After: 3 * time.Minute}
	inside := unchecked{endpointAt("e", rec.URL)}
	smuggled := unchecked{endpointAt("e", rec.URL)}
	smuggled.e.Headers = map[string]string{"Idempotency-Key": "1"}
	halfTLS := unchecked{endpointAt("e", rec.URL)}
	halfTLS.e.TLS.Certificate = "x"
	unsigned := unchecked{Endpoint{ID: "e", URL: rec.URL, AllowHTTP: true}}
	for _, c := range []struct {
		name   string
		config Config
		change func(*worker.Job)
		want   verdict
	}{
		{"no destination", Config{Endpoints: known}, func(j *worker.Job) { j.Destination = "" }, rejected},
		{"unknown, new job", Config{Endpoints: known}, func(j *worker.Job) { j.Destination = "x" }, waits},
		{"unknown, for long", Config{Endpoints: known}, func(j *worker.Job) { j.Destination, j.EnqueuedAt = "x", time.Now().Add(-10*time.Minute) }, waitsOn},
		{"unknown, delayed job", Config{Endpoints: known}, func(j *worker.Job) {
			j.Destination, j.EnqueuedAt, j.NotBefore = "x", time.Now().Add(-time.Hour), time.Now()
		}, waits},
		{"unknown, old job", Config{Endpoints: known}, func(j *worker.Job) { j.Destination, j.EnqueuedAt = "x", time.Now().Add(-16*time.Minute) }, gone},
		{"lookup fails", Config{Endpoints: brokenEndpoints{}}, nil, verdict{Outcome: worker.OutcomeDeferred, Breaker: breaker.OutcomeIgnored, After: lookupPause}},
		{"gone", Config{Endpoints: known}, func(j *worker.Job) { j.Destination = "off" }, gone},
		{"paused", Config{Endpoints: known}, func(j *worker.Job) { j.Destination = "paused" }, held},
		{"disabled", Config{Endpoints: known}, func(j *worker.Job) { j.Destination = "failing" }, held},
		{"certificate without a key", Config{Endpoints: halfTLS}, nil, rejected},
		{"event id with a dot", Config{Endpoints: known}, func(j *worker.Job) { j.Headers = map[string]string{signature.HeaderID: "a.b"} }, rejected},
		{"job id with a dot", Config{Endpoints: known}, func(j *worker.Job) { j.ID = "a.b" }, rejected},
		{"bad content type", Config{Endpoints: known}, func(j *worker.Job) { j.Headers = map[string]string{"content-type": "a\nb"} }, rejected},
		{"blocked address", Config{Endpoints: inside, Guard: defaultGuard}, nil, rejected},
		{"reserved header", Config{Endpoints: smuggled}, nil, rejected},
		{"no secret", Config{Endpoints: unsigned}, nil, rejected},
	} {
		job := jobFor("e")
		if c.change != nil {
			c.change(job)
		}
		err := newSender(t, c.config).deliver(t.Context(), job)
		if diff := cmp.Diff(c.want, verdictOf(t, err)); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
	}
	if n := len(rec.requests()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// TestCutOff: what ends a call from outside is told to the worker as it is, and blames the endpoint for nothing.
func TestCutOff(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 2)
	rec := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	s := newSender(t, Config{Endpoints: static(t, endpointAt("e", rec.URL))})

	ctx, cancel := context.WithCancelCause(t.Context())
	var stopped sync.WaitGroup
	stopped.Go(func() {
		<-arrived
		cancel(worker.ErrStopping)
	})
	err := s.deliver(ctx, jobFor("e"))
	stopped.Wait()
	var stated *worker.Error
	if !errors.Is(err, worker.ErrStopping) || errors.As(err, &stated) {
		t.Errorf("stop: %T %v", err, err)
	}

	job := jobFor("e")
	job.Deadline = time.Now().Add(50 * time.Millisecond)
	ctx, end := context.WithDeadlineCause(t.Context(), job.Deadline, worker.ErrTimeout)
	defer end()
	want := ignored
	want.Cause = dlq.CauseTimeout
	if diff := cmp.Diff(want, verdictOf(t, s.deliver(ctx, job))); diff != "" {
		t.Errorf("deadline (-want +got):\n%s", diff)
	}
}

// TestKindTimeout: an endpoint that hangs until the kind's timeout, or one that adapts, has failed: its breaker, its own schedule and whoever
// disables endpoints hear of it.
func TestKindTimeout(t *testing.T) {
	t.Parallel()
	server := newRawServer(t, silence)
	e := endpointAt("e", server.url)
	e.Backoff = soon(t)
	var seen []Attempt
	s := newSender(t, Config{Endpoints: static(t, e), Observe: func(a Attempt) { seen = append(seen, a) }})
	job := jobFor("e")
	job.Deadline = time.Now().Add(time.Hour)
	ctx, end := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, worker.ErrTimeout)
	defer end()
	err := s.deliver(ctx, job)
	want := outage
	want.Cause = dlq.CauseTimeout
	if diff := cmp.Diff(want, verdictOf(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var stated *worker.Error
	if !errors.As(err, &stated) || !stated.Backoff.Equal(e.Backoff) {
		t.Errorf("not the endpoint's schedule: %v", err)
	}
	if len(seen) != 1 || seen[0].CutOff || seen[0].Neutral() || seen[0].Err == "" {
		t.Errorf("observed %+v", seen)
	}
}

func TestEndpointTimeout(t *testing.T) {
	t.Parallel()
	server := newRawServer(t, silence)
	e := endpointAt("e", server.url)
	e.Timeout = 50 * time.Millisecond
	want := outage
	want.Cause = dlq.CauseTimeout
	s := newSender(t, Config{Endpoints: static(t, e)})
	err := s.deliver(t.Context(), jobFor("e"))
	if diff := cmp.Diff(want, verdictOf(t, err)); diff != "" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		"endpoints: required": {},
		"total -1s":           {Endpoints: brokenEndpoints{}, Timeouts: Timeouts{Total: -time.Second}},
		"user agent":          {Endpoints: brokenEndpoints{}, UserAgent: "a\nb"},
	} {
		if _, err := NewSender(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
