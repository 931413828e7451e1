package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/worker"
)

// Field case E1 (a): a graceful stop in the middle of a job's only attempt spends no attempt.
func TestStopSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "q.db")
	ok(t, call(t, "", nil, "enqueue", "slow", "--id", "only", "--db", db))
	begun, runs := make(chan int, 4), atomic.Int32{}
	slow := func(r *worker.Registry) error {
		kind := worker.Kind[[]byte]{Name: "slow", Config: worker.KindConfig{MaxAttempts: 1}}
		worker.Handle(r, kind, func(ctx context.Context, _ []byte) error {
			runs.Add(1)
			begun <- worker.JobFrom(ctx).Attempt
			if runs.Load() > 1 {
				return nil
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), worker.ErrStopping) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return ctx.Err()
		})
		return nil
	}
	first := start(t, slow, "--db", db, "--admin-addr", "off", "--stop-grace", "0s")
	if n := <-begun; n != 1 {
		t.Errorf("first attempt is number %d", n)
	}
	if code := first.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, first.log)
	}
	if got := depth(t, db, "default"); got != [3]int{1, 0, 0} {
		t.Errorf("depth after the stop %v, want the job ready", got)
	}
	second := start(t, slow, "--db", db, "--admin-addr", "off")
	if n := <-begun; n != 1 {
		t.Errorf("after the stop the attempt is number %d, want 1 again", n)
	}
	eventually.True(t, "the job is done", func() bool { return depth(t, db, "default") == [3]int{} })
	if code := second.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, second.log)
	}
	if strings.Contains(second.log.String(), "dead_letter") || runs.Load() != 2 {
		t.Errorf("%d runs\n%s", runs.Load(), second.log)
	}
}

// adminAddr reads where the admin server of a program listens.
func adminAddr(t *testing.T, r *running) string {
	t.Helper()
	var addr string
	eventually.True(t, "the admin server listens", func() bool {
		for line := range strings.Lines(r.log.String()) {
			var entry struct{ Msg, Admin string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "worker starts" {
				addr = entry.Admin
			}
		}
		return addr != ""
	})
	return "http://" + addr
}

func ask(t *testing.T, method, url, user, password string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		req.SetBasicAuth(user, password)
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
	return res.StatusCode, string(body)
}

// Field case N2, the admin server's part: with credentials every page that tells something asks for them, and nothing can be changed.
func TestAdminServer(t *testing.T) {
	t.Parallel()
	var seen record
	db := filepath.Join(t.TempDir(), "q.db")
	ok(t, call(t, "", nil, "enqueue", "note", "x", "--id", "a", "--db", db))
	program := start(t, seen.setup, "--db", db, "--admin-addr", "127.0.0.1:0", "--set", "admin.user=ops", "--set", "admin.password=pw")
	url := adminAddr(t, program)
	eventually.True(t, "ready, and the job counted", func() bool {
		status, _ := ask(t, "GET", url+"/readyz", "ops", "pw")
		_, metrics := ask(t, "GET", url+"/metrics", "ops", "pw")
		return status == 200 && strings.Contains(metrics, `kind="note"`)
	})
	for _, tt := range []struct {
		method, path, user, password string
		want                         int
	}{
		{"GET", "/healthz", "", "", 200},
		{"GET", "/readyz", "", "", 200}, // without saying why not
		{"GET", "/metrics", "", "", 401},
		{"GET", "/metrics", "ops", "wrong", 401},
		{"GET", "/metrics", "ops", "pw", 200},
		{"POST", "/metrics", "ops", "pw", 405},
	} {
		if got, _ := ask(t, tt.method, url+tt.path, tt.user, tt.password); got != tt.want {
			t.Errorf("%s %s as %q answers %d, want %d", tt.method, tt.path, tt.user, got, tt.want)
		}
	}
	_, metrics := ask(t, "GET", url+"/metrics", "ops", "pw")
	for _, want := range []string{"caisson_", "go_goroutines", "process_", `queue="default"`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics have no %q", want)
		}
	}
	if strings.Contains(program.log.String(), "pw") {
		t.Error("the password is in the log")
	}
	if code := program.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, program.log)
	}
}

// A second worker on a host has the same default address. That is a warning; where somebody chose the address it is an error.
func TestAdminAddressInUse(t *testing.T) {
	t.Parallel()
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	db := filepath.Join(t.TempDir(), "q.db")
	r := callWith(t, oneKind, "", nil, "run", "--db", db, "--admin-addr", taken.Listener.Addr().String())
	if r.code != 1 || !strings.Contains(r.err, "admin.addr:") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	var seen record
	first := start(t, seen.setup, "--db", db)
	second := start(t, seen.setup, "--db", db)
	eventually.True(t, "both run", func() bool {
		return strings.Contains(first.log.String(), "worker starts") && strings.Contains(second.log.String(), "worker starts")
	})
	if log := first.log.String() + second.log.String(); !strings.Contains(log, "no admin server") {
		t.Errorf("nobody was told that the address is taken:\n%s", log)
	}
}

func TestSetupError(t *testing.T) {
	t.Parallel()
	r := callWith(t, func(*worker.Registry) error { return errors.New("database is away") }, "", nil, "run", "--db", filepath.Join(t.TempDir(), "q.db"))
	if r.code != 1 || !strings.Contains(r.err, "register kinds: database is away") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
}

// The endpoints of the configuration alone make a worker that delivers webhooks.
func TestWebhooksFromConfiguration(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		if err != nil {
			t.Errorf("receiver: %v", err)
		}
		got <- string(body) + " " + r.Header.Get("X-Team")
	}))
	defer receiver.Close()
	_, port, _ := strings.Cut(receiver.Listener.Addr().String(), ":")
	file := write(t, `
admin: {addr: "off"}
webhook:
  allow_cidrs: [127.0.0.0/8]
  ports: [`+port+`]
  endpoints:
    shop:
      url: `+receiver.URL+`/hook
      allow_http: true
      secrets: [`+secret+`]
      headers: {X-Team: blue}
`)
	db := filepath.Join(t.TempDir(), "q.db")
	program := start(t, nil, "--db", db, "--config", file)
	ok(t, call(t, "", nil, "enqueue", "webhook.deliver", `{"a": 1.0}`, "--destination", "shop", "--db", db))
	if body := <-got; body != `{"a": 1.0} blue` {
		t.Errorf("received %q", body)
	}
	eventually.True(t, "acked", func() bool { return depth(t, db, "default") == [3]int{} })
	if code := program.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, program.log)
	}
}
