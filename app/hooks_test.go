package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// receiver takes webhooks and checks their signatures.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	verifier *standardwebhooks.Webhook
	events   []string // ids and bodies, in the order in which they came
	faults   []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err == nil {
			err = r.verifier.Verify(body, req.Header)
		}
		if err != nil {
			r.faults = append(r.faults, err.Error())
		}
		r.events = append(r.events, req.Header.Get("webhook-id")+" "+string(body))
	}))
	t.Cleanup(r.Close)
	return r
}

// trusts sets the secret that signatures are made with.
func (r *receiver) trusts(t *testing.T, secret string) {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verifier = verifier
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// hookSite is a worker process with its admin server.
type hookSite struct {
	*process
	url string
}

const adminPassword = "correct horse"

var adminAddress = regexp.MustCompile(`admin=(127\.0\.0\.1:\d+)`)

// spawnHooks starts a worker with a registry and waits until it is ready.
func spawnHooks(t *testing.T, dir string, env []string) *hookSite {
	t.Helper()
	s := &hookSite{process: spawn(t, dir, env, "--admin-addr", "127.0.0.1:0")}
	eventually.True(t, "the worker is ready", func() bool {
		if found := adminAddress.FindStringSubmatch(s.log.String()); found != nil {
			s.url = "http://" + found[1]
			status, _ := s.ask(t, "GET", "/readyz", "")
			return status == http.StatusOK
		}
		return false
	})
	return s
}

// ask asks the admin server, with its credentials.
func (s *hookSite) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("ops", adminPassword)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// sees waits until the process counts so many endpoints in a state.
func (s *hookSite) sees(t *testing.T, state string, n int) {
	t.Helper()
	line := fmt.Sprintf("caisson_webhook_endpoints{state=%q} %d\n", state, n)
	eventually.True(t, "the worker sees "+strings.TrimSpace(line), func() bool {
		_, text := s.ask(t, "GET", "/metrics", "")
		return strings.Contains(text, line)
	})
}

// publish publishes an event of the type and returns how many endpoints get it.
func (s *hookSite) publish(t *testing.T, id, payload string) int {
	t.Helper()
	status, text := s.ask(t, "POST", "/v1/events", fmt.Sprintf(`{"id":%q,"type":"invoice.paid","payload":%s}`, id, payload))
	var out struct{ Endpoints int }
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != http.StatusAccepted {
		t.Fatalf("publish %s: %d %s", id, status, text)
	}
	return out.Endpoints
}

// An endpoint that is added beside running workers gets signed deliveries of what their API publishes; while it is paused they are held, and once
// it is enabled they are released. Both processes follow each change.
func TestRegistryAcrossProcesses(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		acrossProcesses(t, nil)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := newDatabase(t)
		ok(t, call(t, "", db.env, "migrate", "up"))
		acrossProcesses(t, db.env)
	})
}

func acrossProcesses(t *testing.T, env []string) {
	t.Helper()
	dir := t.TempDir()
	r := newReceiver(t)
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	env = append(slices.Clone(env),
		"CAISSON_WEBHOOK_SECRET_KEY="+endpoints.NewKey(), "CAISSON_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", "CAISSON_WEBHOOK_PORTS="+port,
		"CAISSON_ADMIN_USER=ops", "CAISSON_ADMIN_PASSWORD="+adminPassword)
	one, two := spawnHooks(t, dir, env), spawnHooks(t, dir, env)
	db := filepath.Join(dir, "q.db")
	command := func(args ...string) string {
		t.Helper()
		return ok(t, call(t, "", env, append(args, "--db", db)...))
	}

	r.trusts(t, strings.TrimSpace(command("endpoints", "add", "shop", r.URL+"/hook", "--allow-http", "--event", "invoice.*")))
	one.sees(t, "active", 1)
	two.sees(t, "active", 1)
	const payload = `{ "b":"a&b<c>", "a":1.0 }`
	if n := one.publish(t, "evt-1", payload); n != 1 {
		t.Fatalf("%d endpoints get the event, want 1", n)
	}
	two.publish(t, "evt-1", payload) // the same again
	eventually.True(t, "the first event came", func() bool { return len(r.got()) == 1 })

	command("endpoints", "pause", "shop", "--reason", "maintenance")
	one.sees(t, "paused", 1)
	two.sees(t, "paused", 1)
	two.publish(t, "evt-2", payload)
	eventually.True(t, "the second event is held", func() bool {
		return strings.Contains(call(t, "", env, "explain", "shop:evt-2", "--db", db, "--json").out, `"held"`)
	})
	if status, text := one.ask(t, "POST", "/v1/endpoints/shop/enable", ""); status != http.StatusOK {
		t.Fatalf("enable: %d %s", status, text)
	}
	eventually.True(t, "the held event came", func() bool { return len(r.got()) == 2 })
	if want := []string{"evt-1 " + payload, "evt-2 " + payload}; !slices.Equal(r.got(), want) {
		t.Errorf("came %q, want %q", r.got(), want)
	}
	eventually.True(t, "both calls are logged", func() bool {
		_, text := two.ask(t, "GET", "/v1/endpoints/shop/attempts", "")
		return strings.Count(text, `"status":200`) == 2
	})

	if out := command("endpoints", "test", "shop"); !strings.HasPrefix(out, "delivered: 200 (answered)") {
		t.Errorf("test printed %q", out)
	}
	command("endpoints", "resend", "shop", "evt-1")
	eventually.True(t, "the first event came again", func() bool { return len(r.got()) == 4 })
	if out := command("endpoints", "recover", "shop", "--since", "1h"); out != "enqueued 0 events that had no attempt, and replayed 0 dead letters\n" {
		t.Errorf("recover printed %q", out)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.faults) > 0 {
		t.Errorf("signatures: %q", r.faults)
	}
	for _, p := range []*hookSite{one, two} {
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d\n%s", code, p.log)
		}
	}
}

// A worker with another key says what it cannot read, and is not ready while that is everything.
func TestWorkerWithTheWrongKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := func(key string) []string {
		return []string{"CAISSON_WEBHOOK_SECRET_KEY=" + key, "CAISSON_ADMIN_USER=ops", "CAISSON_ADMIN_PASSWORD=" + adminPassword}
	}
	right, wrong := env(endpoints.NewKey()), env(endpoints.NewKey())
	db := filepath.Join(dir, "q.db")
	s := spawnHooks(t, dir, wrong)
	s.sees(t, "unreadable", 0)
	ok(t, call(t, "", right, "endpoints", "add", "shop", "https://example.com/hook", "--db", db))
	s.sees(t, "unreadable", 1)
	if status, text := s.ask(t, "GET", "/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "none of 1 webhook endpoints can be read") {
		t.Errorf("ready: %d %q", status, text)
	}
	ok(t, call(t, "", wrong, "endpoints", "add", "books", "https://example.com/hook", "--db", db))
	s.sees(t, "active", 2) // one that cannot be read has a state, too
	s.sees(t, "unreadable", 1)
	if status, text := s.ask(t, "GET", "/readyz", ""); status != http.StatusOK {
		t.Errorf("not ready with one that can be read: %d %q", status, text)
	}
}

// Without credentials, and without a registry, there is no API, and the answer says why.
func TestNoAPI(t *testing.T) {
	t.Parallel()
	key := "CAISSON_WEBHOOK_SECRET_KEY=" + endpoints.NewKey()
	for name, tt := range map[string]struct {
		env    []string
		status int
		says   string
	}{
		"no credentials": {[]string{key}, http.StatusForbidden, "set admin.user and admin.password"},
		"no registry":    {[]string{"CAISSON_ADMIN_USER=ops", "CAISSON_ADMIN_PASSWORD=" + adminPassword}, http.StatusNotFound, "webhook.secret_key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spawnHooks(t, t.TempDir(), tt.env)
			if status, text := s.ask(t, "POST", "/v1/events", `{}`); status != tt.status || !strings.Contains(text, tt.says) || !strings.Contains(text, `"urn:caisson:problem:no-`) {
				t.Errorf("%d %q, want %d and %q", status, text, tt.status, tt.says)
			}
		})
	}
}

// A worker that cannot read the key does not start, and shows no part of it.
func TestBadSecretKey(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"CAISSON_WEBHOOK_SECRET_KEY=hunter2": "webhook.secret_key", "CAISSON_WEBHOOK_SECRET_KEY_FILE=/nowhere/key": "webhook.secret_key_file",
	} {
		r := callWith(t, noKinds, "", []string{env}, "config", "check")
		if r.code != 2 || !strings.Contains(r.err, want) || strings.Contains(r.err, "hunter2") {
			t.Errorf("%s: code %d, %s", env, r.code, r.err)
		}
	}
}

// Endpoints can be looked after while the broker is away.
func TestEndpointsWithoutBroker(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	ok(t, call(t, "", db.env, "migrate", "up"))
	env := append(slices.Clone(db.env), "CAISSON_BROKER=rabbitmq", "CAISSON_RABBITMQ_URLS=amqp://guest:guest@127.0.0.1:1/", "CAISSON_WEBHOOK_SECRET_KEY="+endpoints.NewKey())
	ok(t, call(t, "", env, "endpoints", "add", "shop", "https://example.com/hook"))
	ok(t, call(t, "", env, "endpoints", "pause", "shop"))
	if out := ok(t, call(t, "", env, "endpoints", "list")); !strings.Contains(out, "paused") {
		t.Errorf("list printed\n%s", out)
	}
}

// Where the store is a database, looking after endpoints neither needs the file of the embedded queue nor makes it.
func TestEndpointsWithoutQueueFile(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	ok(t, call(t, "", db.env, "migrate", "up"))
	file := filepath.Join(t.TempDir(), "q.db")
	env := append(slices.Clone(db.env), "CAISSON_EMBEDDED_PATH="+file, "CAISSON_WEBHOOK_SECRET_KEY="+endpoints.NewKey())
	ok(t, call(t, "", env, "endpoints", "list"))
	ok(t, call(t, "", env, "endpoints", "add", "shop", "https://example.com/hook"))
	ok(t, call(t, "", env, "endpoints", "show", "shop"))
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the queue: %v, want none", err)
	}
}
