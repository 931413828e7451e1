package prom

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const rulesFile = "../../deploy/prometheus/caisson.rules.yml"

// ruleFile is the part of Prometheus' rule format that the file uses; other fields are refused.
type ruleFile struct {
	Groups []struct {
		Name     string `yaml:"name"`
		Interval string `yaml:"interval"`
		Rules    []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	var f ruleFile
	if err := dec.Decode(&f); err != nil {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	var all []rule
	for _, g := range f.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no rules found")
	}
	return all
}

var (
	metricName = regexp.MustCompile(`caisson_[a-z_]+`)
	selector   = regexp.MustCompile(`(caisson_[a-z_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`\bby\s*\(([^)]*)\)`)
)

// ofTheProgram are metrics of the worker's program that rules speak of, with their labels.
var ofTheProgram = map[string][]string{
	"caisson_outbox_pending_jobs": {"state"}, "caisson_outbox_oldest_seconds": nil,
	"caisson_webhook_disabling_frozen": nil, "caisson_webhook_endpoints_disabled_total": {"reason"}, "caisson_webhook_attempts_total": {"log"},
	"caisson_webhook_endpoints": {"state"},
}

// find returns what is known of a metric. Those that this package does not export are in the document, by name.
func find(all map[string]described, document, name string) (described, bool) {
	if strings.HasPrefix(name, brokerPrefix) {
		return described{Labels: []string{"queue"}}, strings.Contains(document, "| `"+name+"` |")
	}
	if labels, ok := ofTheProgram[name]; ok {
		return described{Labels: labels}, strings.Contains(document, "`"+name+"`")
	}
	return lookup(all, name)
}

// Rules may only speak of metrics and labels that exist, and every alert leads to a chapter of the runbook.
func TestRulesMatchTheMetrics(t *testing.T) {
	t.Parallel()
	all := exported(t)
	book, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readRules(t) {
		t.Run(r.Alert, func(t *testing.T) {
			var labels []string // of every metric in the expression
			for _, name := range metricName.FindAllString(r.Expr, -1) {
				d, ok := find(all, string(list), name)
				if !ok {
					t.Errorf("expression speaks of %s, which does not exist", name)
				}
				labels = append(labels, d.Labels...)
			}
			if len(labels) == 0 && !metricName.MatchString(r.Expr) {
				t.Errorf("expression %q speaks of no metric", r.Expr)
			}
			for _, s := range selector.FindAllStringSubmatch(r.Expr, -1) {
				d, _ := find(all, string(list), s[1])
				for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
					if !slices.Contains(d.Labels, m[1]) {
						t.Errorf("%s has no label %q", s[1], m[1])
					}
				}
			}
			for _, g := range grouping.FindAllStringSubmatch(r.Expr, -1) {
				for _, label := range strings.Split(g[1], ",") {
					if label = strings.TrimSpace(label); !slices.Contains(append(labels, "instance", "job", "le"), label) {
						t.Errorf("grouped by %q, which no metric of the expression has", label)
					}
				}
			}
			if strings.Count(r.Expr, "(") != strings.Count(r.Expr, ")") || strings.Count(r.Expr, "{") != strings.Count(r.Expr, "}") {
				t.Errorf("brackets of %q do not match", r.Expr)
			}
			if !slices.Contains([]string{"warning", "page"}, r.Labels["severity"]) {
				t.Errorf("severity %q: use warning or page", r.Labels["severity"])
			}
			if r.Annotations["summary"] == "" {
				t.Error("no summary")
			}
			if !strings.Contains(string(book), "\n## "+r.Alert+"\n") {
				t.Errorf("docs/runbook.md has no chapter %q", r.Alert)
			}
			if want := "docs/runbook.md#" + strings.ToLower(r.Alert); !strings.HasSuffix(r.Annotations["runbook"], want) {
				t.Errorf("runbook %q does not end in %q", r.Annotations["runbook"], want)
			}
		})
	}
}

// lookup finds a metric also by the names under which a histogram is stored.
func lookup(all map[string]described, name string) (described, bool) {
	if d, ok := all[name]; ok && d.Type != "histogram" {
		return d, true
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && all[base].Type == "histogram" {
			return all[base], true
		}
	}
	return described{}, false
}

// The thresholds that operators were promised.
func TestRulesHaveTheThresholds(t *testing.T) {
	t.Parallel()
	want := map[string][3]string{ // severity, for, and how the expression ends
		"CaissonDeadLetters":     {"warning", "", "> 0"},
		"CaissonManyDeadLetters": {"page", "", "> 100"},
		"CaissonBreakerOpen":     {"warning", "", "> 300"},
		"CaissonBreakerFlapping": {"warning", "", "> 0"},

		"CaissonWebhookEndpointDisabled":    {"warning", "", "(caisson_webhook_endpoints_disabled_total[15m])) > 0"},
		"CaissonWebhookEndpointsUnreadable": {"page", "2m", `{state="unreadable"}) > 0`},
	}
	for _, r := range readRules(t) {
		w, ok := want[r.Alert]
		if !ok {
			continue
		}
		delete(want, r.Alert)
		if r.Labels["severity"] != w[0] || r.For != w[1] || !strings.HasSuffix(strings.TrimSpace(r.Expr), w[2]) {
			t.Errorf("%s is %q for %q, severity %s; want it to end in %q, for %q, severity %s",
				r.Alert, r.Expr, r.For, r.Labels["severity"], w[2], w[1], w[0])
		}
	}
	for name := range want {
		t.Errorf("no alert %s", name)
	}
	if flapLimit != 4 || flapWindow.Minutes() != 10 {
		t.Errorf("flapping is %d transitions in %s, promised are more than 3 in 10m", flapLimit, flapWindow)
	}
}
