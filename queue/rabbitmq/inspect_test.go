package rabbitmq

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

func (r *rig) inspect(b *Broker, name string, use inspect.Use) string {
	r.Helper()
	found, err := b.Inspect(r.Context(), name, use)
	if err != nil {
		r.Fatal(err)
	}
	var lines []string
	for _, f := range found {
		if f.Queue != name || f.Remedy == "" {
			r.Errorf("finding without queue or remedy: %+v", f)
		}
		if !strings.Contains(f.What, "unroutable") { // other tests leave messages there
			lines = append(lines, string(f.Severity)+": "+f.What)
		}
	}
	return strings.Join(lines, "\n")
}

func TestInspect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.open(r.config())
	name := r.queue(b, "inspect")
	if got := r.inspect(b, name, inspect.Use{MaxAttempts: 5, LongestRun: time.Minute}); got != "" {
		t.Errorf("a queue that is in order: %s", got)
	}
	if got := r.inspect(b, r.name("missing"), inspect.Use{}); !strings.Contains(got, "is missing in the broker") {
		t.Errorf("a missing queue: %q", got)
	}
	got := r.inspect(b, name, inspect.Use{MaxAttempts: 1000, LongestRun: time.Hour})
	for _, want := range []string{"warning: jobs may have 1000 attempts", "fault: a job may run for 1h0m0s"} {
		if !strings.Contains(got, want) {
			t.Errorf("settings that do not fit: %q, want %q", got, want)
		}
	}
	cfg := r.config()
	cfg.DeliveryLimit = 9
	if got := r.inspect(r.open(cfg), name, inspect.Use{}); !strings.Contains(got, "fault: ") || !strings.Contains(got, "x-delivery-limit") {
		t.Errorf("other arguments: %q", got)
	}
	r.publish(b, name, text("x"))
	r.raw(func(ch *amqp.Channel) {
		if _, err := ch.QueueDelete(testPrefix+queue.DLQ(name), false, false, false); err != nil {
			t.Fatal(err)
		}
	})
	got = r.inspect(b, name, inspect.Use{})
	for _, want := range []string{"note: 1 messages wait and nobody consumes", "fault: dead-letter queue"} {
		if !strings.Contains(got, want) {
			t.Errorf("findings %q, want %q", got, want)
		}
	}
}

// TestManagement reads what RabbitMQ's management API answers, from a server that answers in its form.
func TestManagement(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	name := r.name("managed")
	info := map[string]any{
		"name": testPrefix + name, "messages_ready": 3, "messages_dlx": 2, "policy": "ttl",
		"effective_policy_definition": map[string]any{"message-ttl": 1000, "queue-leader-locator": "balanced"},
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		var answer any = info
		switch {
		case user != "u" || password != "p/w" || req.Method != http.MethodGet:
			w.WriteHeader(http.StatusUnauthorized)
		case req.URL.EscapedPath() == "/api/queues/%2F" && req.URL.Query().Get("page") != "":
			answer = map[string]any{"page_count": 1, "items": []any{info, map[string]any{"name": testPrefix + "delay.1000"}}}
		case req.URL.EscapedPath() != "/api/queues/%2F/"+testPrefix+name:
			w.WriteHeader(http.StatusNotFound)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer api.Close()
	cfg := r.config()
	cfg.Management = strings.Replace(api.URL, "http://", "http://u:p%2Fw@", 1)
	b := r.open(cfg)
	if err := b.CreateQueue(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	got := r.inspect(b, name, inspect.Use{})
	for _, want := range []string{"fault: 2 messages are stuck", `fault: policy "ttl" sets message-ttl on "`} {
		if !strings.Contains(got, want) {
			t.Errorf("findings %q, want %q", got, want)
		}
	}
	infos, err := b.Queues(t.Context())
	if err != nil || len(infos) != 2 || infos[0].Name != name || infos[1].Name != queue.DLQ(name) {
		t.Errorf("Queues: %v, error %v", infos, err)
	}
	queues, err := b.management.queues(t.Context(), testPrefix)
	if err != nil {
		t.Fatal(err)
	}
	b.setStuck(queues)
	if got := gauge(b, "messages_dlx"); got != 2 {
		t.Errorf("gauge messages_dlx is %v, want 2", got)
	}
	cfg.Management = strings.Replace(api.URL, "http://", "http://u:wr0ng@", 1)
	if got := r.inspect(r.open(cfg), name, inspect.Use{}); !strings.Contains(got, "401") || strings.Contains(got, "wr0ng") {
		t.Errorf("wrong password: %q", got)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]Config{
		"no URL":           {},
		"prefix":           {URLs: []string{"amqp://h/"}, Prefix: strings.Repeat("p", 101)},
		"heartbeat":        {URLs: []string{"amqp://h/"}, Heartbeat: time.Millisecond},
		"consumer timeout": {URLs: []string{"amqp://h/"}, ConsumerTimeout: new(time.Second)},
		"max body":         {URLs: []string{"amqp://h/"}, MaxBody: -1},
		"delivery limit":   {URLs: []string{"amqp://h/"}, DeliveryLimit: -1},
		"window":           {URLs: []string{"amqp://h/"}, Window: 4097},
		"management":       {URLs: []string{"amqp://h/"}, Management: "localhost:15672"},
	} {
		if _, err := c.WithDefaults().validate(); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
