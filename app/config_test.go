package app_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/worker"
)

func noKinds(*worker.Registry) error { return nil }

func oneKind(r *worker.Registry) error {
	worker.Handle(r, worker.Kind[[]byte]{Name: "known"}, func(context.Context, []byte) error { return nil })
	return nil
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "caisson.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Field case L2, through the commands: what is mistyped is refused with its path and the way out, by check and by run alike, and no file
// is left behind.
func TestBadConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ yaml, want string }{
		"bare number":        {"lease: 30", "lease:"},
		"quoted number":      {`lease: "30"`, "lease:"},
		"no slots":           {"concurrency: 0", "concurrency:"},
		"negative slots":     {"concurrency: -1", "concurrency:"},
		"heartbeat":          {"lease: 10s\nheartbeat: 10s", "heartbeat:"},
		"mistyped key":       {"kinds:\n  known:\n    max_attemps: 1", "did you mean max_attempts?"},
		"key twice":          {"lease: 10s\nlease: 20s", "lease: is given twice"},
		"not a name":         {"queues: no", "queues:"},
		"unregistered kind":  {"kinds:\n  unknown:\n    timeout: 1s", `kind "unknown": configured but not registered`},
		"bulkhead too large": {"concurrency: 2\nkinds:\n  known:\n    bulkhead:\n      size: 3", "sum up to 3"},
		"unknown default":    {"queues:\n  - name: q\n    default_kind: nobody", `default kind "nobody" is not registered`},
		"open admin":         {`admin: {addr: "0.0.0.0:0"}`, "admin.addr:"},
		"password only":      {"admin: {password: x}", "admin.user:"},
		"bad secret": {
			"webhook:\n  endpoints:\n    shop:\n      url: https://example.com/hook\n      secrets: [whsec_x]",
			"webhook.endpoints.shop.secrets[0]:",
		},
		"loopback": {
			"webhook:\n  endpoints:\n    shop:\n      url: https://127.0.0.1/hook\n      secrets: [whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=]",
			"add its network to webhook.allow_cidrs",
		},
		"bad port": {
			"webhook:\n  ports: [443]\n  endpoints:\n    shop:\n      url: https://example.com:8443/hook\n      secrets: [whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=]",
			"port 8443 is not allowed; allowed are [443] (webhook.ports)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := filepath.Join(t.TempDir(), "q.db")
			for _, command := range [][]string{{"config", "check"}, {"run"}} {
				r := callWith(t, oneKind, "", nil, append(command, "--config", write(t, tt.yaml), "--db", db)...)
				if r.code != 2 || !strings.Contains(r.err, tt.want) {
					t.Errorf("%v: code %d, want 2 and %q:\n%s", command, r.code, tt.want, r.err)
				}
			}
			if _, err := os.Stat(db); err == nil {
				t.Error("a refused configuration has made a file")
			}
		})
	}
}

// P1: a minimum of calls that a destination which hangs never reaches is refused by its numbers.
func TestBreakerThatCannotOpenIsRefused(t *testing.T) {
	t.Parallel()
	file := write(t, "destinations:\n  default:\n    breaker:\n      min_calls: 21")
	r := callWith(t, oneKind, "", nil, "config", "check", "--config", file)
	if r.code != 2 || !strings.Contains(r.err, "min_calls 21 is never reached") || !strings.Contains(r.err, "with 20 at once and a timeout of 30s") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	ok(t, callWith(t, oneKind, "", nil, "config", "check", "--config", file, "--set", "destinations.default.breaker.window=2m"))
}

func TestRefusedConfigurationAsJSON(t *testing.T) {
	t.Parallel()
	r := callWith(t, oneKind, "", nil, "config", "check", "--json", "--config", write(t, "lease: 30\nconcurrency: 0"))
	var failure struct {
		Problems []config.Problem
		ExitCode int `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(r.err), &failure); err != nil || r.code != 2 {
		t.Fatalf("code %d, %v: %s", r.code, err, r.err)
	}
	var keys []string
	for _, p := range failure.Problems {
		keys = append(keys, p.Key)
	}
	slices.Sort(keys)
	if diff := cmp.Diff([]string{"concurrency", "lease"}, keys); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// Field case L1, through the commands: values that come by environment alone are applied.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	env := []string{
		"CAISSON_QUEUES=a, b", "CAISSON_ADMIN_USER=ops", "CAISSON_ADMIN_PASSWORD=hunter2", "CAISSON_LEASE=", "CAISSON_CONCURENCY=5",
		"CAISSON_KINDS_KNOWN_TIMEOUT=3s", "OTHER=1",
	}
	r := callWith(t, oneKind, "", env, "config", "print", "--json", "--set", "stop.grace=1s")
	ok(t, r)
	var printed struct{ Settings []config.Setting }
	if err := json.Unmarshal([]byte(r.out), &printed); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range printed.Settings {
		got[s.Key] = s.Value + " by " + string(s.Origin)
	}
	for key, want := range map[string]string{
		"queues": "[{name: a, weight: 1}, {name: b, weight: 1}] by env", "admin.user": "ops by env", "lease": "30s by default",
		"kinds.known.timeout": "3s by env", "stop.grace": "1s by flag",
	} {
		if got[key] != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
	if !strings.Contains(r.err, "warning: CAISSON_CONCURENCY") || !strings.Contains(r.err, "CAISSON_CONCURRENCY?") {
		t.Errorf("the mistyped variable is not named: %s", r.err)
	}
	if text := ok(t, callWith(t, oneKind, "", env, "config", "print")); strings.Contains(text+r.out, "hunter2") || !strings.Contains(text, "lease: 30s") {
		t.Errorf("config print:\n%s", text)
	}
	ok(t, callWith(t, oneKind, "", env, "config", "check"))
}

func TestConfigFileByVariable(t *testing.T) {
	t.Parallel()
	env := []string{"CAISSON_CONFIG=" + write(t, "lease: 7s")}
	if out := ok(t, call(t, "", env, "config", "print")); !strings.Contains(out, "lease: 7s") {
		t.Errorf("the file is not read:\n%s", out)
	}
	if out := ok(t, call(t, "", env, "config", "print", "--config", write(t, "lease: 8s"))); !strings.Contains(out, "lease: 8s") {
		t.Errorf("the flag does not win:\n%s", out)
	}
}

func TestNoKindsAtAll(t *testing.T) {
	t.Parallel()
	if r := callWith(t, noKinds, "", nil, "config", "check"); r.code != 2 || !strings.Contains(r.err, "webhook.endpoints") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
}
