package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server until the test ends and returns its URL.
func start(t *testing.T, cfg Config) string {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "http://127.0.0.1:" + port
}

// ask sends one request; edit may change it.
func ask(t *testing.T, method, url string, edit func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(req)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

var metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "caisson_up 1\n") })

func TestPages(t *testing.T) {
	t.Parallel()
	broken := errors.New("subscription to default is gone")
	url := start(t, Config{Metrics: metrics, CheckTimeout: 10 * time.Millisecond, Checks: []Check{
		{"store", func(context.Context) error { return nil }},
		{"subscription", func(context.Context) error { return broken }},
		{"slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{"wild", func(context.Context) error { panic("oops") }},
	}})
	tests := []struct {
		method, path string
		status       int
		want         []string
	}{
		{"GET", "/healthz", 200, []string{`"status": "ok"`}},
		{"HEAD", "/healthz", 200, nil},
		{"GET", "/readyz", 503, []string{`"ready": false`, broken.Error(), "no answer within 10ms", "check panicked: oops"}},
		{"GET", "/metrics", 200, []string{"caisson_up 1"}},
		{"GET", "/", 404, nil},
		{"GET", "/debug/pprof/", 404, nil},
		{"POST", "/healthz", 405, nil},
		{"POST", "/metrics", 405, nil},
		{"DELETE", "/readyz", 405, nil},
		{"OPTIONS", "/readyz", 405, nil},
	}
	for _, tt := range tests {
		status, header, body := ask(t, tt.method, url+tt.path, nil)
		if status != tt.status {
			t.Errorf("%s %s answers %d, want %d", tt.method, tt.path, status, tt.status)
		}
		for _, want := range tt.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s %s: %q is missing in %s", tt.method, tt.path, want, body)
			}
		}
		if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s lacks the guards for browsers: %v", tt.method, tt.path, header)
		}
	}
}

func TestReadyWithoutFault(t *testing.T) {
	t.Parallel()
	url := start(t, Config{Checks: []Check{{"store", func(context.Context) error { return nil }}}})
	if status, _, body := ask(t, "GET", url+"/readyz", nil); status != 200 || !strings.Contains(body, `"ready": true`) {
		t.Fatalf("answers %d %s", status, body)
	}
	if status, _, _ := ask(t, "GET", url+"/metrics", nil); status != 404 {
		t.Fatalf("no metrics were given, and /metrics answers %d", status)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	// Every address: with credentials that is allowed.
	broken := Check{"broker", func(context.Context) error { return errors.New("cannot be reached at amqp.internal") }}
	url := start(t, Config{Addr: ":0", User: "ops", Password: "s3cret", Metrics: metrics, Checks: []Check{broken}})
	tests := []struct {
		name           string
		user, password string
		status         int
	}{
		{"none", "", "", 401},
		{"wrong password", "ops", "s3cre", 401},
		{"wrong user", "ops2", "s3cret", 401},
		{"longer password", "ops", "s3cret2", 401},
		{"right", "ops", "s3cret", 200},
	}
	for _, tt := range tests {
		status, header, body := ask(t, "GET", url+"/metrics", func(r *http.Request) {
			if tt.user != "" {
				r.SetBasicAuth(tt.user, tt.password)
			}
		})
		if status != tt.status {
			t.Errorf("%s: answers %d, want %d", tt.name, status, tt.status)
		}
		if status == 401 && (header.Get("WWW-Authenticate") == "" || strings.Contains(body, "caisson_up")) {
			t.Errorf("%s: refuses badly: %v %s", tt.name, header, body)
		}
	}
	if status, _, _ := ask(t, "GET", url+"/healthz", nil); status != 200 {
		t.Errorf("/healthz asks for credentials: %d", status)
	}
	if status, _, body := ask(t, "GET", url+"/readyz", nil); status != 503 || !strings.Contains(body, `"ready": false`) || strings.Contains(body, "internal") {
		t.Errorf("/readyz without credentials: %d %s", status, body)
	}
	own := func(r *http.Request) { r.SetBasicAuth("ops", "s3cret") }
	if status, _, body := ask(t, "GET", url+"/readyz", own); status != 503 || !strings.Contains(body, "amqp.internal") {
		t.Errorf("/readyz with credentials: %d %s", status, body)
	}
	// A cross-site form rides on the browser's credentials: the method stops it.
	if status, _, _ := ask(t, "POST", url+"/readyz", own); status != 405 {
		t.Errorf("POST with credentials answers %d", status)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	probe := func(context.Context) error { return nil }
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"every address", Config{Addr: ":0"}, "can be reached from other hosts"},
		{"every address, spelled out", Config{Addr: "0.0.0.0:0"}, "can be reached from other hosts"},
		{"every address, version 6", Config{Addr: "[::]:0"}, "can be reached from other hosts"},
		{"a name", Config{Addr: "127.0.0.1.example.test:0"}, "can be reached from other hosts"},
		{"no port", Config{Addr: "127.0.0.1"}, "is not host:port"},
		{"user alone", Config{Addr: "127.0.0.1:0", User: "a"}, "go together"},
		{"password alone", Config{Addr: ":0", Password: "a"}, "go together"},
		{"colon in the user", Config{Addr: ":0", User: "a:b", Password: "c"}, "colon"},
		{"nameless check", Config{Addr: "127.0.0.1:0", Checks: []Check{{"", probe}}}, "check 1 needs a name"},
		{"negative timeout", Config{Addr: "127.0.0.1:0", StopTimeout: -1}, "must not be negative"},
	}
	for _, tt := range tests {
		s, err := New(t.Context(), tt.cfg)
		if err == nil {
			t.Errorf("%s: accepted", tt.name)
			_ = s.Close()
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestPortInUseIsAnErrorAtStart(t *testing.T) {
	t.Parallel()
	first, err := New(t.Context(), Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Config{Addr: first.Addr().String()}); err == nil {
		t.Error("two servers on one port")
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}

// TestStop ends the server while one request runs and another one hangs for ever.
func TestStop(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]bool{"request finishes": false, "request hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, release := make(chan struct{}), make(chan struct{})
			page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(entered)
				select {
				case <-release:
					_, _ = io.WriteString(w, "done")
				case <-r.Context().Done(): // the connection was cut
				}
			})
			s, err := New(t.Context(), Config{Addr: "127.0.0.1:0", Metrics: page, StopTimeout: map[bool]time.Duration{false: time.Minute, true: time.Millisecond}[hang]})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended, answered := make(chan error, 1), make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			go func() {
				client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+s.Addr().String()+"/metrics", nil)
				res, err := client.Do(req)
				if err == nil {
					_, err = io.ReadAll(res.Body)
					_ = res.Body.Close()
				}
				answered <- err
			}()
			<-entered
			cancel()
			if !hang {
				close(release)
			}
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
			if err := <-answered; (err != nil) != hang {
				t.Errorf("request ended with %v", err)
			}
		})
	}
}
