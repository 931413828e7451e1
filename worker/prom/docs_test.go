package prom

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caisson-go/caisson/worker"
)

// described is what a metric looks like from outside: its type and its labels.
type described struct {
	Type   string
	Labels []string
}

// exported drives an observer through everything that it can show and returns what a registry then holds.
func exported(t *testing.T) map[string]described {
	t.Helper()
	all := make(map[string]described)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Destinations = []string{"sendgrid"}
		o, reg := newObserver(t, r.cfg)
		r.start(t, o, worker.Config{Registry: mailRegistry(), Concurrency: 10})
		r.enqueue(t, worker.NewJob{Kind: "mail", Destination: "broken"})
		for _, e := range everyEvent() {
			o.Observe(e)
		}
		o.Call("geocoder")("fell_back")
		time.Sleep(time.Second)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			d := described{Type: strings.ToLower(f.GetType().String())}
			for _, l := range f.Metric[0].Label {
				d.Labels = append(d.Labels, l.GetName())
			}
			all[f.GetName()] = d
		}
		described := make(chan *prometheus.Desc, 1000)
		o.Describe(described)
		if len(described) != len(all) {
			t.Fatalf("the test reached %d of %d metrics: %v", len(all), len(described), slices.Sorted(maps.Keys(all)))
		}
	})
	return all
}

var (
	docTable = regexp.MustCompile(`(?s)<!-- generated: worker; make docs -->.*?<!-- end -->`)
	docRow   = regexp.MustCompile("(?m)^\\| `(caisson_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\| ([^|]+) \\|$")
)

// The document has every metric, with its type and labels, and none that does not exist.
func TestDocumentListsEveryMetric(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]described)
	for _, row := range docRow.FindAllStringSubmatch(docTable.FindString(string(text)), -1) {
		if _, twice := listed[row[1]]; twice {
			t.Errorf("%s is listed twice", row[1])
		}
		d := described{Type: row[2]}
		for _, label := range strings.Fields(strings.ReplaceAll(row[3], ",", " ")) {
			d.Labels = append(d.Labels, strings.Trim(label, "`"))
		}
		slices.Sort(d.Labels)
		listed[row[1]] = d
	}
	if diff := cmp.Diff(exported(t), listed); diff != "" {
		t.Errorf("docs/metrics.md differs from the code (-code +document):\n%s", diff)
	}
	checkFolded(t, string(text))
}

// checkFolded compares the limits that the document names with the code's.
func checkFolded(t *testing.T, text string) {
	t.Helper()
	for _, limit := range []string{fmt.Sprintf("at most %d, then `%s`", MaxLabelValues, Other), fmt.Sprintf("at most %d, else `%s`", MaxDestinations, Other)} {
		if !strings.Contains(text, limit) {
			t.Errorf("docs/metrics.md does not say %q", limit)
		}
	}
}
