package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/caisson-go/caisson/schedule"
)

// same compares configurations, secrets included.
var same = cmp.Options{cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateComparable(Secret{}, SecretURL{})}

func TestEveryKeyIsDescribed(t *testing.T) {
	t.Parallel()
	walk(schema, nil, func(path) []string { return []string{"x"} }, func(p path, n *node) {
		if !strings.HasSuffix(n.doc, ".") {
			t.Errorf("%s needs a description that ends with a full stop", p)
		}
		if n.leaf.typeName() == "" {
			t.Errorf("%s has a type without a name: %s", p, n.leaf.typ)
		}
		for _, bound := range []string{n.leaf.min, n.leaf.max} {
			if bound == "" {
				continue
			}
			if _, err := n.leaf.fromText(bound); err != nil {
				t.Errorf("bound of %s: %v", p, err)
			}
		}
	})
}

// mustLoad loads without a problem.
func mustLoad(t *testing.T, file string, env []string, flags map[string]string) *Config {
	t.Helper()
	c, warnings, err := load("test.yaml", []byte(file), env, flags)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Fatalf("unexpected warnings: %v", warnings)
	}
	return c
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	breaker := Breaker{FailurePercent: 50, SlowPercent: 50, Window: 30 * time.Second, HungAfter: 4 * time.Second, Open: 5 * time.Second, OpenGrowth: 1.5, OpenMax: 30 * time.Second, Probes: 5, ProbeSuccesses: 4}
	webhookBreaker := Breaker{FailurePercent: 80, SlowPercent: 80, Window: 10 * time.Minute, MinCalls: 5, HungAfter: 4 * time.Second, Open: 5 * time.Minute, OpenGrowth: 1, OpenMax: 15 * time.Minute, Probes: 5, ProbeSuccesses: 4}
	rabbitmq := RabbitMQ{
		URLs: []SecretURL{{"amqp://guest:guest@127.0.0.1:5672/"}}, Prefix: "cs1.", Heartbeat: 10 * time.Second, ConsumerTimeout: 30 * time.Minute,
		MaxBody: 16 << 20, DeliveryLimit: 1000, Window: 256,
	}
	sqs := SQS{Create: true, MaxReceiveCount: 1000, FIFOBatch: 1, FairGroups: true, Linger: 5 * time.Millisecond}
	want := &Config{
		Broker: "embedded", Embedded: Embedded{Path: "./caisson.db", Sync: "mixed"}, RabbitMQ: rabbitmq, SQS: sqs,
		Postgres: Postgres{Schema: "caisson", ConnectTimeout: 5 * time.Second, StatementTimeout: 30 * time.Second},
		Store:    "auto", SQLite: SQLite{Path: "./caisson.db"}, Queues: []Queue{{Name: "default", Weight: 1}},
		Concurrency: 20, Lease: 30 * time.Second, Heartbeat: 10 * time.Second, Stop: Stop{Grace: 20 * time.Second, Hard: 5 * time.Second},
		Destinations: Destinations{SlowLane: SlowLane{SharePercent: 25, Over: time.Second}, Default: Destination{Breaker: breaker, Burst: 1, Budget: Budget{Form: "finagle", Percent: 10, Floor: 3}}},
		Hold:         Hold{After: 15 * time.Minute, Backlog: 100}, DLQ: DLQ{Backend: "auto", Retention: 14 * 24 * time.Hour, Mirror: "none", Sweep: time.Minute},
		Idempotency: Idempotency{Retention: 48 * time.Hour}, Admin: Admin{Addr: "127.0.0.1:9464"}, Log: Log{Level: "info", Format: "text"},
		Webhook: Webhook{
			Default: EndpointDefault{ClientErrors: "retry", Timeout: 26 * time.Second, Concurrency: 3, Burst: 1, Backoff: schedule.WebhookBackoff},
			Breaker: webhookBreaker, Ports: []int{80, 443, 8443},
			Registry: "auto", EventRetention: 72 * time.Hour, AttemptLog: 72 * time.Hour, MaxEvent: 1 << 20,
		},
	}
	for _, file := range []string{"", "# nothing\n", "admin:\nkinds:\n", "---\n"} {
		if diff := cmp.Diff(want, mustLoad(t, file, nil, nil), same, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("file %q (-want +got):\n%s", file, diff)
		}
	}
}

const whole = `
queues:
  - high=3
  - {name: low, default_kind: report.run, priority: 2}
concurrency: 40
lease: 1m
kinds:
  email.Send:
    timeout: 10s
    max_attempts: 5
    backoff: fixed(30s, 2m, 10m, none)
    bulkhead: {size: 8, waiting: 4}
    idempotency: key
    max_age: 1d
    destination: sendgrid
destinations:
  default: {concurrency: 10}
  overrides:
    sendgrid:
      rate: 100
      breaker: {failure_percent: 25}
webhook:
  default: {client_errors: reject}
  allow_cidrs: [127.0.0.0/8]
  endpoints:
    Ord-1:
      url: http://127.0.0.1:8080/hook?token=t0psecret
      secrets: [whsec_first, whsec_second]
      headers: {X-Api-Key: k1secret}
      allow_http: true
      concurrency: 9
admin: {user: ops, password: hunter2secret}
`

func TestWholeFile(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, whole, nil, nil)
	if diff := cmp.Diff([]Queue{{Name: "high", Weight: 3}, {Name: "low", Weight: 1, Priority: 2, DefaultKind: "report.run"}}, c.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	k := c.Kinds["email.Send"]
	if k.Backoff.String() != "fixed(30s, 2m, 10m, none)" || k.Timeout != 10*time.Second || k.MaxAge != 24*time.Hour || k.Bulkhead.Size != 8 || *k.Bulkhead.Waiting != 4 {
		t.Errorf("kind %+v", k)
	}
	d := c.Destinations.For("sendgrid")
	if d.Rate != 100 || d.Breaker.FailurePercent != 25 || d.Breaker.HungAfter != 4*time.Second || d.Concurrency != 10 {
		t.Errorf("the override is not completed from the default: %+v", d)
	}
	if other := c.Destinations.For("other"); other != c.Destinations.Default {
		t.Errorf("a destination without override got %+v", other)
	}
	e := c.Webhook.Endpoints["Ord-1"]
	if e.URL.Reveal() != "http://127.0.0.1:8080/hook?token=t0psecret" || len(e.Secrets) != 2 || e.Secrets[1].Reveal() != "whsec_second" ||
		e.Headers["X-Api-Key"].Reveal() != "k1secret" {
		t.Error("an endpoint's secrets did not arrive")
	}
	if e.ClientErrors != "reject" || e.Concurrency != 9 || e.Timeout != 26*time.Second || !e.Backoff.Equal(schedule.WebhookBackoff) {
		t.Errorf("the endpoint is not completed from the default: %+v", e)
	}
}

func TestSecretsShowNothing(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, whole, nil, nil)
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "config", c, "secret", c.Admin.Password)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "config", c, "secret", c.Admin.Password)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		fmt.Fprintf(&out, verb+"\n", c.Admin.Password)
		fmt.Fprintf(&out, verb+"\n", c.Webhook.Endpoints)
	}
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		b, err := marshal([]any{c.Admin, c.Webhook.Endpoints, c.Settings()})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	// Words that YAML takes for an alias or a tag are read as one, and are secrets all the same.
	for _, file := range []string{"admin: {password: *hunter2secret }", "admin: {password: !hunter2secret }", "webhook: {endpoints: {a: {headers: {k: *hunter2secret }}}}"} {
		_, _, err := load("f", []byte(file), nil, nil)
		if err == nil || !strings.Contains(err.Error(), "put it in quotes") {
			t.Errorf("%s: %v", file, err)
		}
		fmt.Fprintln(&out, err)
	}
	// A bad value of a secret key may not show up in the error either.
	_, _, err := load("f", []byte("admin: {password: 12345678secret, user: [secret]}\nwebhook: {endpoints: {a: {url: 'ftp://u:psecret@h/secret', secrets: true}}}"), nil, nil)
	if err == nil {
		t.Fatal("accepted")
	}
	out.WriteString(err.Error())
	for _, secret := range []string{"hunter2secret", "whsec_first", "k1secret", "t0psecret", "psecret", "12345678secret", "68756e7465723273"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%s is shown in\n%s", secret, out.String())
		}
	}
}

func TestPrintTellsOrigins(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "lease: 1m\nlog: {level: debug}\nwebhook: {endpoints: {a.b: {url: https://x.test/, secrets: s}}}",
		[]string{"CAISSON_LOG_LEVEL=warn"}, map[string]string{"concurrency": "7"})
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"broker: embedded # default\n", "concurrency: 7 # flag\n", "lease: 1m # file: test.yaml line 1\n", " level: warn # env: variable CAISSON_LOG_LEVEL\n",
		" timeout: 26s # inherited: webhook.default\n", " a.b:\n", ` url: "https://x.test/***" # file`,
	} {
		if got := strings.Join(strings.Split(squeeze(out.String()), "\n"), "\n"); !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	// What is printed is a configuration again, but for the masked values.
	again, _, err := load("again", out.Bytes(), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	ignore := cmp.Options{cmpopts.IgnoreFields(Endpoint{}, "URL", "Secrets"), cmpopts.IgnoreFields(RabbitMQ{}, "URLs")}
	if diff := cmp.Diff(c, again, same, ignore, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("printed and read again (-want +got):\n%s", diff)
	}
}

// squeeze makes runs of blanks one blank.
func squeeze(s string) string {
	for strings.Contains(s, "  ") {
		s = strings.ReplaceAll(s, "  ", " ")
	}
	return s
}

func TestLoadReadsTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "caisson.yaml")
	if err := os.WriteFile(file, []byte("lease: 1m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := Load(Sources{File: file})
	if err != nil || c.Lease != time.Minute {
		t.Fatalf("got %v, %v", c, err)
	}
	if _, _, err := Load(Sources{File: file + ".none"}); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a missing file gives %v", err)
	}
}
