package config

import (
	"strings"
	"testing"
)

// What was renamed is refused with its new name, wherever it stands.
func TestRetiredKeysNameTheNewOnes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		yaml string
		env  []string
		flag string
		want string
	}{
		"file":               {yaml: "webhook: {default: {schedule: constant(1s)}}", want: "is called webhook.default.backoff now"},
		"entry in a file":    {yaml: "webhook: {endpoints: {a.b: {schedule: constant(1s)}}}", want: "is called webhook.endpoints.a.b.backoff now"},
		"variable":           {env: []string{"CAISSON_WEBHOOK_DEFAULT_SCHEDULE=x"}, want: "is called CAISSON_WEBHOOK_DEFAULT_BACKOFF now"},
		"entry in variables": {env: []string{"CAISSON_WEBHOOK_ENDPOINTS_A_B_SCHEDULE=x"}, want: "is called CAISSON_WEBHOOK_ENDPOINTS_A_B_BACKOFF now"},
		"without effect":     {yaml: "rabbitmq: {delay_steps: 8}", want: "rabbitmq.delay_steps: has no effect any more: leave it out"},
		"variable without":   {env: []string{"CAISSON_RABBITMQ_DELAY_STEPS=8"}, want: "has no effect any more: leave it out"},
		"flag":               {flag: "webhook.endpoints.a.b.schedule", want: "is called webhook.endpoints.a.b.backoff now"},
	} {
		flags := map[string]string{}
		if tt.flag != "" {
			flags[tt.flag] = "x"
		}
		_, _, err := load("f.yaml", []byte(tt.yaml), tt.env, flags)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if now := Renamed("webhook.endpoints..schedule"); now != "" {
		t.Errorf("an entry without a name is called %s", now)
	}
}

// The table has no name that is in use, and none that leads to another old name.
func TestRetiredNamesAreNotInUse(t *testing.T) {
	t.Parallel()
	for _, r := range retired {
		if Renamed(strings.ReplaceAll(r.now, "*", "x")) != "" {
			t.Errorf("%s leads to %s, which is retired as well", r.old, r.now)
		}
		if strings.Contains(r.old, " ") {
			continue // a flag: the test of the commands knows those
		}
		if _, l := resolveKey(schema, nil, strings.ReplaceAll(r.old, "*", "x")); l != nil {
			t.Errorf("%s is in use", r.old)
		}
		if _, l := resolveKey(schema, nil, strings.ReplaceAll(r.now, "*", "x")); l == nil && r.now != "" {
			t.Errorf("%s leads to %s, which there is not", r.old, r.now)
		}
	}
}

// Classes of queues come later. Their numbers never do.
func TestClassIsReserved(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"1": "1 is a number", "critical": "this version takes no class"} {
		const file = "f.yaml"
		_, _, err := load(file, []byte("queues: [{name: a, class: "+value+"}]"), nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("class %s: %v, want %q", value, err, want)
		}
		if value == "1" && !strings.Contains(err.Error(), "critical_plus, critical, sheddable_plus, sheddable") {
			t.Errorf("class %s: %v names no class", value, err)
		}
	}
}
