package app_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/internal/testkit/eventually"
	"github.com/caisson-go/caisson/queue/outbox"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// publishing is a store with two endpoints, of which the second asks for order, and their receivers.
type publishing struct {
	receivers []*receiver
	env       []string
}

func newPublishing(t *testing.T, env ...string) *publishing {
	t.Helper()
	p := &publishing{}
	var lines, ports []string
	for i := range 2 {
		r, secret := newReceiver(t), signature.NewSecret().Reveal()
		r.trusts(t, secret)
		_, port, err := net.SplitHostPort(r.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
		lines = append(lines, fmt.Sprintf(`{"id":"shop-%d","url":"%s/hook","allow_http":true,"ordered":%t,"secret":%q}`, i, r.URL, i == 1, secret))
		p.receivers = append(p.receivers, r)
	}
	dir := t.TempDir()
	p.env = append(slices.Clone(env), "CAISSON_WEBHOOK_SECRET_KEY="+endpoints.NewKey(), "CAISSON_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8",
		"CAISSON_WEBHOOK_PORTS=443,"+strings.Join(ports, ","), "CAISSON_EMBEDDED_PATH="+filepath.Join(dir, "q.db"), "CAISSON_ADMIN_ADDR=off")
	file := filepath.Join(dir, "many.jsonl")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, call(t, "", p.env, "endpoints", "import", file))
	return p
}

// got is what came to both endpoints, or nothing as long as it is not the same; what the second one got is in order.
func (p *publishing) got(t *testing.T) []string {
	t.Helper()
	first, second := p.receivers[0].got(), p.receivers[1].got()
	sorted := slices.Sorted(slices.Values(second))
	if slices.Sort(first); !slices.Equal(first, sorted) {
		return nil
	}
	return second
}

// signed fails the test unless all signatures were good.
func (p *publishing) signed(t *testing.T) {
	t.Helper()
	for _, r := range p.receivers {
		r.mu.Lock()
		if len(r.faults) > 0 {
			t.Errorf("signatures: %q", r.faults)
		}
		r.mu.Unlock()
	}
}

// A program that only publishes hands its events to workers, those of an ordered endpoint too, and sees an endpoint that is added while it runs.
func TestOpenPublisher(t *testing.T) {
	t.Parallel()
	p := newPublishing(t)
	opening, cancel := context.WithCancel(t.Context())
	publisher, err := app.OpenPublisher(opening, app.Config{Env: p.env})
	cancel() // what was opened stays so
	if err != nil {
		t.Fatal(err)
	}
	publish := func(id string) int {
		published, err := publisher.Publish(t.Context(), webhook.Event{ID: id, Type: "invoice.paid", Body: []byte(id)})
		if err != nil {
			t.Fatal(err)
		}
		return published.Endpoints
	}
	for _, id := range []string{"e1", "e2", "e1"} {
		if n := publish(id); n != 2 {
			t.Errorf("%s is for %d endpoints, want 2", id, n)
		}
	}
	ok(t, call(t, "", p.env, "endpoints", "add", "late", "https://example.com/", "--tenant", "late"))
	eventually.True(t, "the publisher sees an endpoint that is added", func() bool {
		published, err := publisher.Publish(t.Context(), webhook.Event{ID: "late", Type: "late", Tenant: "late"})
		return err == nil && published.Endpoints == 1
	})
	ok(t, call(t, "", p.env, "endpoints", "pause", "late"))
	if err := publisher.Close(); err != nil {
		t.Fatal(err)
	}
	w := startWith(t, p.env, nil)
	eventually.True(t, "both events came to both endpoints", func() bool { return slices.Equal(p.got(t), []string{"e1 e1", "e2 e2"}) })
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, w.log)
	}
	p.signed(t)
}

// What keeps a publisher from being opened says what to set; no file is made.
func TestOpenPublisherRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  map[string]string
		says string
	}{
		"no key":    {nil, "set webhook.secret_key or webhook.secret_key_file"},
		"off":       {map[string]string{"webhook.registry": "off", "webhook.secret_key": endpoints.NewKey()}, "do not set webhook.registry to off"},
		"bad key":   {map[string]string{"webhook.secret_key": "short"}, "webhook.secret_key"},
		"misspelt":  {map[string]string{"webhook.secretkey": "x"}, "webhook.secretkey"},
		"no broker": {map[string]string{"broker": "pigeon"}, "broker"},
	} {
		db := filepath.Join(t.TempDir(), "q.db")
		set := map[string]string{"embedded.path": db}
		for key, value := range c.set {
			set[key] = value
		}
		_, err := app.OpenPublisher(t.Context(), app.Config{Env: []string{}, Set: set, Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
		if _, err := os.Stat(db); err == nil {
			t.Errorf("%s: made a file", name)
		}
	}
}

// A job that was committed with a business write has its event published once to each endpoint, although its handler runs again after it has
// published; one that was rolled back publishes nothing.
func TestPublishFromAHandler(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	ok(t, call(t, "", db.env, "migrate", "up"))
	p := newPublishing(t, db.env...)
	soon, err := schedule.Constant(10*time.Millisecond, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int32
	w := startWith(t, append(p.env, "CAISSON_OUTBOX_RELAY=true"), func(r *worker.Registry) error {
		kind := Paid
		kind.Config = worker.KindConfig{Backoff: soon}
		worker.Handle(r, kind, func(ctx context.Context, i Invoice) error {
			if err := tellPaid(ctx, i); err != nil {
				return err
			}
			if runs.Add(1) < 3 {
				return errors.New("fails after it has published")
			}
			return nil
		})
		return nil
	})
	box, err := outbox.New(outbox.Config{Schema: db.schema})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	pay := func(number int, failure error) error {
		return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			client, err := worker.NewClient(worker.ClientConfig{Broker: box.In(tx)})
			if err != nil {
				return err
			}
			if _, err := client.Enqueue(t.Context(), Paid.New(Invoice{Number: number})); err != nil {
				return err
			}
			return failure
		})
	}
	declined := errors.New("the card was declined")
	if err := pay(1, declined); !errors.Is(err, declined) {
		t.Errorf("rolled back: %v", err)
	}
	if err := pay(2, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{`invoice-2-paid {"number":2}`}
	eventually.True(t, "the event came to both endpoints, and its job is done", func() bool { return slices.Equal(p.got(t), want) && runs.Load() == 3 })
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, w.log)
	}
	if got := p.got(t); !slices.Equal(got, want) {
		t.Errorf("came %q, want %q", got, want)
	}
	p.signed(t)
}

// A handler of a program without a registry is told what to set.
func TestNoPublisherInAHandler(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "q.db")
	told := make(chan error, 10)
	w := start(t, func(r *worker.Registry) error {
		worker.Handle(r, worker.Kind[[]byte]{Name: "tell"}, func(ctx context.Context, _ []byte) error {
			_, err := webhook.PublisherFrom(ctx)
			told <- err
			return nil
		})
		return nil
	}, "--db", db, "--admin-addr", "off")
	ok(t, call(t, "", nil, "enqueue", "tell", "--db", db))
	if err := <-told; !errors.Is(err, webhook.ErrNoPublisher) || !strings.Contains(err.Error(), "webhook.secret_key") {
		t.Errorf("error %v", err)
	}
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, w.log)
	}
}

// The guide quotes the handler and the program as they are tested.
func TestGuideQuotesPublishing(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	guide, handler := read("../docs/guide-webhooks.md"), read("example_publish_test.go")
	from, to := strings.Index(handler, "// Paid is"), strings.Index(handler, "// A handler that")
	program := read("../examples/publisher/main.go")
	body := program[strings.Index(program, "func publish("):]
	for name, source := range map[string]string{"the handler": strings.TrimSpace(handler[from:to]) + "\n", "examples/publisher": body} {
		if !strings.Contains(guide, "\n```go\n"+source+"```\n") {
			t.Errorf("docs/guide-webhooks.md does not quote %s as it is", name)
		}
	}
}
