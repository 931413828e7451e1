package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/webhook"
)

// Workers report a pause some seconds after it began: until then only the registry knows that held deliveries stay held.
func TestHeldDeliveries(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		kind   string
		target *endpoint
		want   string
	}{
		"another kind":    {"mail", nil, "until its destination shop recovers, which it has: workers release its jobs now"},
		"active":          {webhook.KindDeliver, &endpoint{ID: "shop", State: "active"}, "until its destination shop recovers, which it has: workers release its jobs now"},
		"paused":          {webhook.KindDeliver, &endpoint{ID: "shop", State: "paused", Since: since}, "its endpoint shop is paused since 2026-01-02T03:04:05Z, until somebody runs w endpoints enable shop"},
		"not looked at":   {webhook.KindDeliver, nil, "until its destination shop recovers"},
		"not known there": {webhook.KindDeliver, &endpoint{ID: "shop", State: endpointUnknown}, "its endpoint shop is not in the registry: the job becomes a dead letter once it has waited for 15m"},
	} {
		d := &diagnosis{program: "w", hasStatuses: true, reports: []fleet.Report{{Owner: "host/1"}}}
		if tt.target != nil {
			d.endpoints = map[string]*endpoint{"shop": tt.target}
		}
		st := d.heldJob(&job{kind: tt.kind, destination: "shop"}, &dlq.Entry{Destination: "shop", State: dlq.StateHeld})
		if st.state != stateHeld || !strings.HasSuffix(st.why, tt.want) {
			t.Errorf("%s: %s", name, st.why)
		}
	}
}
