package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEnvironmentAlone has no file at all: values, lists and nested secrets by variables only.
func TestEnvironmentAlone(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"a,b", "a b", "a, b", " a ,, b "} {
		c := mustLoad(t, "", []string{
			"CAISSON_EMBEDDED_PATH=/var/lib/jobs.db", "CAISSON_QUEUES=" + list, "CAISSON_ADMIN_USER=ops", "CAISSON_ADMIN_PASSWORD=s3cret",
			"CAISSON_WEBHOOK_ENDPOINTS_ORDERS_URL=https://hooks.test/cb", "CAISSON_WEBHOOK_ENDPOINTS_ORDERS_SECRETS=whsec_a, whsec_b",
			"CAISSON_WEBHOOK_ENDPOINTS_ORDERS_HEADERS=X-Key: a, b\nX-Other: c", "CAISSON_KINDS_REPORT_BULKHEAD_SIZE=3", "CAISSON_WEBHOOK_PORTS=443 8443",
			"PATH=/bin", "CAISSONX=1",
		}, nil)
		if diff := cmp.Diff([]Queue{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}}, c.Queues); diff != "" {
			t.Errorf("queues from %q (-want +got):\n%s", list, diff)
		}
		e := c.Webhook.Endpoints["orders"]
		if c.Embedded.Path != "/var/lib/jobs.db" || c.Admin.Password.Reveal() != "s3cret" || e.URL.Reveal() != "https://hooks.test/cb" ||
			len(e.Secrets) != 2 || e.Secrets[1].Reveal() != "whsec_b" || e.Headers["X-Key"].Reveal() != "a, b" || e.Headers["X-Other"].Reveal() != "c" {
			t.Errorf("a value did not arrive: %+v", c)
		}
		if c.Kinds["report"].Bulkhead.Size != 3 || len(c.Webhook.Ports) != 2 {
			t.Errorf("kind %+v, ports %v", c.Kinds, c.Webhook.Ports)
		}
	}
}

func TestEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	file := "queues: [x, w, z]\nlease: 1m\nkinds: {email.Send: {timeout: 10s, max_attempts: 5}}\n"
	c := mustLoad(t, file, []string{"CAISSON_QUEUES=a=2,b", "CAISSON_LEASE=", "CAISSON_KINDS_EMAIL_SEND_TIMEOUT=20s"}, map[string]string{"queues": "f"})
	if diff := cmp.Diff([]Queue{{Name: "f", Weight: 1}}, c.Queues); diff != "" {
		t.Errorf("flags come last (-want +got):\n%s", diff)
	}
	c = mustLoad(t, file, []string{"CAISSON_QUEUES=a=2,b", "CAISSON_LEASE=", "CAISSON_KINDS_EMAIL_SEND_TIMEOUT=20s"}, nil)
	if diff := cmp.Diff([]Queue{{Name: "a", Weight: 2}, {Name: "b", Weight: 1}}, c.Queues); diff != "" {
		t.Errorf("a variable replaces the file's list (-want +got):\n%s", diff)
	}
	if got := c.Lease.String(); got != "1m0s" {
		t.Errorf("an empty variable changed the lease to %s", got)
	}
	if k := c.Kinds["email.Send"]; k.Timeout.String() != "20s" || k.MaxAttempts != 5 || len(c.Kinds) != 1 {
		t.Errorf("the variable did not reach the file's entry: %+v", c.Kinds)
	}
}

func TestFlagsReachEntries(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "kinds: {email.Send: {timeout: 10s, max_attempts: 5}}", nil, map[string]string{
		"kinds.email.Send.timeout": "20s", "kinds.report.v2.bulkhead.size": "3", "destinations.overrides.mail.eu.breaker.open": "7s",
	})
	if k := c.Kinds["email.Send"]; k.Timeout.String() != "20s" || k.MaxAttempts != 5 {
		t.Errorf("the flag did not reach the file's entry: %+v", c.Kinds)
	}
	if c.Kinds["report.v2"].Bulkhead.Size != 3 || len(c.Kinds) != 2 || c.Destinations.Overrides["mail.eu"].Breaker.Open.String() != "7s" {
		t.Errorf("flags did not make entries: %+v, %+v", c.Kinds, c.Destinations.Overrides)
	}
}

func TestUnknownFlags(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"kinds.email.send.timout":    "did you mean kinds.email.send.timeout?",
		"kinds.a.bulkhead.sise":      "did you mean kinds.a.bulkhead.size?",
		"kinds.timeout":              "docs/configuration.md lists all",
		"kinds..timeout":             "docs/configuration.md lists all",
		"webhook.endpoints.shop.uri": "did you mean webhook.endpoints.shop.url?",
		"concurency":                 "did you mean concurrency?",
		"something.else.altogether":  "docs/configuration.md lists all",
	} {
		_, _, err := load("", nil, nil, map[string]string{key: "1s"})
		if err == nil || !strings.Contains(err.Error(), key+": unknown key: "+want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
}

func TestFlagsCompleteEntries(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "kinds: {email.send: {timeout: 1s, max_attempts: 3}}", nil, map[string]string{
		"kinds.email.send.timeout": "2s", "kinds.email.send.bulkhead.size": "4", "kinds.New.max_attempts": "7",
		"webhook.endpoints.shop.url": "https://h.test/x", "webhook.endpoints.shop.secrets": "a,b",
	})
	k, n, e := c.Kinds["email.send"], c.Kinds["New"], c.Webhook.Endpoints["shop"]
	if k.Timeout != 2*time.Second || k.MaxAttempts != 3 || k.Bulkhead.Size != 4 || n.MaxAttempts != 7 {
		t.Errorf("%+v, %+v", k, n)
	}
	if e.URL.Reveal() != "https://h.test/x" || len(e.Secrets) != 2 || e.Timeout != 26*time.Second {
		t.Errorf("%s, %d secrets, timeout %s", e.URL, len(e.Secrets), e.Timeout)
	}
	for key, want := range map[string]string{
		"kinds.email.send.timeuot": "unknown key", "kinds.timeout": "unknown key",
		"kinds.Email.send.timeout": "differs from email.send in case only", "webhook.endpoints": "unknown key",
	} {
		_, _, err := load("f", []byte("kinds: {email.send: {timeout: 1s}}"), nil, map[string]string{key: "1s"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}

func TestMisspeltVariablesAreNamed(t *testing.T) {
	t.Parallel()
	_, warnings, err := load("", nil, []string{"CAISSON_CONCURENCY=5", "CAISSON_ADMIN_PASSWRD=secretvalue", "CAISSON_ZZZZZZZZZZ=1", "CAISSON_CONFIG=x", "CAISSON_TYPO="}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	want := []string{
		"CAISSON_ADMIN_PASSWRD: no key has this variable: did you mean CAISSON_ADMIN_PASSWORD?",
		"CAISSON_CONCURENCY: no key has this variable: did you mean CAISSON_CONCURRENCY?",
		"CAISSON_ZZZZZZZZZZ: no key has this variable: variables are CAISSON_ and the key in upper case with _ for dots, for example CAISSON_ADMIN_ADDR",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("warnings (-want +got):\n%s", diff)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file string
		env        []string
		want       string
	}{
		{"bare number", "lease: 30", nil, `lease: duration "30" has no unit: write 30s`},
		{"bare number in quotes", `lease: "30"`, nil, `lease: duration "30" has no unit: write 30s`},
		{"bare number in a variable", "", []string{"CAISSON_LEASE=30"}, `lease: duration "30" has no unit: write 30s for seconds, or use ms, m, h or d (variable CAISSON_LEASE)`},
		{"bare float", "lease: 0.5", nil, "no unit"},
		{"lease 0", "lease: 0s", nil, "0s is too little: the least is 1s"},
		{"no slots", "concurrency: 0", nil, "concurrency: 0 is too little: the least is 1 (f.yaml line 1)"},
		{"negative slots", "concurrency: -1", nil, "concurrency: -1 is too little"},
		{"no slots by variable", "", []string{"CAISSON_CONCURRENCY=0"}, "0 is too little"},
		{"slots in quotes", `concurrency: "20"`, nil, "write it without quotes"},
		{"half a slot", "concurrency: 1.5", nil, `"1.5" is not a whole number`},
		{"heartbeat not below the lease", "heartbeat: 10s\nlease: 10s", nil, "heartbeat: 10s is not below half the lease of 10s"},
		{"misspelt key", "kinds: {a: {max_attemps: 1}}", nil, "kinds.a.max_attemps: unknown key: did you mean max_attempts? (f.yaml line 1)"},
		{"key of nowhere", "zebra: 1", nil, "zebra: unknown key: known here: broker, embedded"},
		{"key twice", "lease: 1m\nstop: {grace: 1s}\nlease: 2m", nil, "lease: is given twice, on lines 1 and 3: keep one of them"},
		{"nested key twice", "stop:\n  grace: 1s\n  grace: 2s", nil, "stop.grace: is given twice, on lines 2 and 3"},
		{"section twice", "stop: {grace: 1s}\nstop: {hard: 1s}", nil, "stop: is given twice, on lines 1 and 2"},
		{"entry twice", "kinds:\n  a: {}\n  a: {}", nil, "kinds.a: is given twice, on lines 2 and 3"},
		{"entries that differ in case", "kinds: {Abc: {timeout: 1s}, abc: {timeout: 2s}}", nil, "differs from Abc in case only"},
		{"entry without a name", "kinds: {' ': {timeout: 1s}}", nil, `" " is no name for an entry`},
		{"entry with a control character", "kinds: {\"a\\x1fb\\0\": {timeout: 1s}}", nil, `is no name for an entry`},
		{"entry without keys", "webhook: {endpoints: {a: }}", nil, "webhook.endpoints.a.url: is missing"},
		{"queue: no", "queue: no", nil, "queue: unknown key: did you mean queues?"},
		{"truth value for a list", "queues: no", nil, "queues: no is a truth value or nothing in YAML, not text"},
		{"truth value in a list", "queues: [a, on]", nil, "queues: item 2: on is a truth value"},
		{"truth value for text", "admin: {user: yes}", nil, "admin.user: yes is a truth value"},
		{"number for text", "admin: {user: 123}", nil, "admin.user: 123 is not text in YAML (int)"},
		{"text for a truth value", "webhook: {endpoints: {a: {allow_http: yes}}}", nil, `"yes" is neither true nor false`},
		{"no value", "lease:", nil, "lease: it has no value"},
		{"section for a value", "lease: {a: 1}", nil, "lease: a map does not belong here: a duration such as 30s"},
		{"list for a value", "lease: [1s]", nil, "lease: a list does not belong here"},
		{"value for a section", "stop: 5s", nil, "stop: is a section"},
		{"list for the whole", "- a", nil, "is a section"},
		{"no YAML", "a: [", nil, "cannot be read as YAML"},
		{"two documents", "lease: 1m\n---\nlease: 2m", nil, "more than one document"},
		{"merge key", "kinds: {a: &a {timeout: 1s}, b: {<<: *a}}", nil, "merge keys (<<) are not supported"},
		{"unknown broker", "broker: kafka", nil, `broker: "kafka" is not one of embedded, rabbitmq, sqs`},
		{"no queue", "queues: []", nil, "queues: the list is empty"},
		{"queue twice", "queues: [a, a]", nil, "a is listed twice"},
		{"queue name", "queues: [a/b]", nil, `"a/b" is no queue name`},
		{"queue weight", "queues: [a=0]", nil, "a has weight 0: it must lie between 1"},
		{"queue weight text", "queues: a=x", nil, `the weight "x" is not a whole number`},
		{"queue map", "queues: [{name: a, wieght: 2}]", nil, `"wieght" is unknown: did you mean weight?`},
		{"queue weight in a map", "queues: [{name: a, weight: x}]", nil, `weight: "x" is not a whole number`},
		{"half a queue weight in a map", "queues: [{name: a, weight: 1.5}]", nil, `weight: "1.5" is not a whole number`},
		{"queue weight in a map, octal", "queues: [{name: a, weight: 0o10}]", nil, `weight: "0o10" is not a whole number`},
		{"more queues than slots", "queues: [a, b]\nconcurrency: 1", nil, "1 slots cannot serve 2 queues"},
		{"bulkheads above the slots", "concurrency: 10\nkinds: {a: {bulkhead: {size: 6}}, b: {bulkhead: {size: 5}}}", nil, "(a 6, b 5) sum up to 11, which is more than the 10 slots"},
		{"backoff", "kinds: {a: {backoff: linear(1s)}}", nil, `kinds.a.backoff: backoff "linear(1s)": curve "linear" is unknown`},
		{"max age above the retention", "kinds: {a: {max_age: 3d}}", nil, "3d is longer than idempotency.retention 2d"},
		{"probes", "destinations: {overrides: {d: {breaker: {probes: 2}}}}", nil, "destinations.overrides.d.breaker.probe_successes: 4 of 2 probes can never succeed"},
		{"percent", "destinations: {default: {breaker: {failure_percent: 101}}}", nil, "101 is too much: the most is 100"},
		{"open admin", "admin: {addr: ':9464'}", nil, "admin.addr: \":9464\" can be reached from other hosts: set admin.user"},
		{"open admin by name", "admin: {addr: 'example.test:9464'}", nil, "can be reached from other hosts"},
		{"look-alike of the loopback", "admin: {addr: '127.0.0.1.example.test:1'}", nil, "can be reached from other hosts"},
		{"password without user", "admin: {password: x}", nil, "user and password go together"},
		{"user with a colon", "admin: {user: 'a:b', password: x}", nil, "admin.user: holds a colon"},
		{"rate beyond every limit", "destinations: {default: {rate: 1e10}}", nil, "destinations.default.rate: 1e+10 is too much"},
		{"rate of next to nothing", "destinations: {overrides: {d: {rate: 1e-9}}}", nil, "destinations.overrides.d.rate: 1e-09 is too little"},
		{"endpoint rate of next to nothing", "webhook: {default: {rate: 1e-9}}", nil, "webhook.default.rate: 1e-09 is too little"},
		{"concurrency beyond every limit", "destinations: {default: {concurrency: 1000001}}", nil, "destinations.default.concurrency: 1000001 is too much"},
		{"budget above the successes", "destinations: {default: {budget: {percent: 101}}}", nil, "budget.percent: 101 is too much: the most is 100"},
		{"budget floor", "destinations: {default: {budget: {floor: 1e6}}}", nil, "budget.floor: 1e+06 is too much"},
		{"admin address", "admin: {addr: 9464}", nil, "admin.addr: 9464 is not text"},
		{"admin port", "admin: {addr: '127.0.0.1:x'}", nil, `port "x" must be a number`},
		{"endpoint without URL", "webhook: {endpoints: {a: {secrets: s}}}", nil, "webhook.endpoints.a.url: is missing"},
		{"endpoint without secret", "webhook: {endpoints: {a: {url: https://h.test}}}", nil, "webhook.endpoints.a.secrets: is missing"},
		{"plain endpoint", "webhook: {endpoints: {a: {url: http://h.test, secrets: s}}}", nil, "is not encrypted"},
		{"network", "webhook: {allow_cidrs: [10.1.2.3/16]}", nil, "did you mean 10.1.0.0/16?"},
		{"port", "webhook: {ports: [0]}", nil, "0 is no port"},
		{"ambiguous variable", "kinds: {a.b: {timeout: 1s}, a_b: {timeout: 1s}}", []string{"CAISSON_KINDS_A_B_TIMEOUT=2s"}, "it could mean kinds.a.b.timeout or kinds.a_b.timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _, err := load("f.yaml", []byte(tt.file), tt.env, nil)
			var list *Error
			if !errors.As(err, &list) || c != nil {
				t.Fatalf("accepted, or not a list of problems: %v", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, _, err := load("f.yaml", []byte("lease: 30\nconcurrency: 0\nqueue: no\n"), []string{"CAISSON_STOP_GRACE=5"}, map[string]string{"log.level": "loud", "no.such": "1"})
	var list *Error
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	var keys []string
	for _, p := range list.Problems {
		keys = append(keys, p.Key)
	}
	if diff := cmp.Diff([]string{"lease", "concurrency", "queue", "stop.grace", "log.level", "no.such"}, keys); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(err.Error(), "configuration: 6 problems:\n  - lease: ") {
		t.Fatal(err)
	}
}

func TestAttemptsThatNeverComeAreWarnedOf(t *testing.T) {
	t.Parallel()
	_, warnings, err := load("f.yaml", []byte("kinds: {a: {max_age: 1h, backoff: 'constant(30m, none)', max_attempts: 4}}"), nil, nil)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].String(), "4 attempts can wait 1h30m in all") {
		t.Fatalf("got %v, %v", warnings, err)
	}
}

func TestAdminBeyondTheLoopback(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"admin: {addr: ':9464', user: u, password: p}", "admin: {addr: 'off'}", "admin: {addr: '[::1]:0'}", "admin: {addr: 'localhost:9464'}", "admin: {addr: '127.9.9.9:1'}",
	} {
		mustLoad(t, file, nil, nil)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(whole), "CAISSON_LEASE", "30s")
	f.Add([]byte("a: &a [*a]\n"), "CAISSON_KINDS_A_B_TIMEOUT", "1s")
	f.Add([]byte("kinds: &k {a: *k}\n"), "CAISSON_WEBHOOK_ENDPOINTS_X_HEADERS", "a:b\nc")
	f.Add([]byte("kinds: {\"a\\x1fb\\0\": {timeout: 1s}, c: }"), "CAISSON_KINDS_\x00_TIMEOUT", "1s")
	f.Add([]byte("queues: [{name: a, weight: 2}]"), "CAISSON_QUEUES", "a=1 b")
	f.Fuzz(func(t *testing.T, file []byte, name, value string) {
		c, _, err := load("f.yaml", file, []string{name + "=" + value}, nil)
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v and %v", c, err)
		}
		if err != nil {
			var list *Error
			if !errors.As(err, &list) || len(list.Problems) == 0 {
				t.Fatalf("an error without a problem: %v", err)
			}
			return
		}
		if c.Concurrency < 1 || len(c.Queues) == 0 || c.Heartbeat <= 0 || c.Heartbeat >= c.Lease {
			t.Fatalf("accepted: %+v", c)
		}
		var out strings.Builder
		if err := c.Print(&out); err != nil {
			t.Fatal(err)
		}
	})
}
