package webhooks

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/caisson-go/caisson/webhook"
)

// Every metric is in the document.
func TestDocumentListsTheMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	described := make(chan *prometheus.Desc, 20)
	NewMetrics().Describe(described)
	close(described)
	n := 0
	for d := range described {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		if n++; !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/metrics.md has no %s", name)
		}
	}
	if n != 6 {
		t.Errorf("%d metrics, want 6", n)
	}
}

// What happens is counted, under few labels; before the registry is loaded its figures are absent.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	m.disabled(webhook.Endpoint{ID: "a", Reason: webhook.ReasonGone})
	m.disabled(webhook.Endpoint{ID: "b", Reason: webhook.ReasonFailing})
	m.disabled(webhook.Endpoint{ID: "c", Reason: "whatever"})
	m.publish(webhook.Published{ID: "e", Endpoints: 3})
	m.publish(webhook.Published{ID: "f"})
	m.changed(webhook.Endpoint{ID: "a", State: webhook.StateActive}, false)
	const want = `# HELP caisson_webhook_deliveries_published_total Deliveries that they made.
# TYPE caisson_webhook_deliveries_published_total counter
caisson_webhook_deliveries_published_total 3
# HELP caisson_webhook_endpoints_disabled_total Endpoints that this worker disabled.
# TYPE caisson_webhook_endpoints_disabled_total counter
caisson_webhook_endpoints_disabled_total{reason="failing"} 1
caisson_webhook_endpoints_disabled_total{reason="gone"} 1
caisson_webhook_endpoints_disabled_total{reason="other"} 1
# HELP caisson_webhook_events_published_total Events that this worker published, through its API or in its handlers, by whether any endpoint wanted them.
# TYPE caisson_webhook_events_published_total counter
caisson_webhook_events_published_total{wanted="no"} 1
caisson_webhook_events_published_total{wanted="yes"} 1
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
