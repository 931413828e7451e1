package fleet_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/internal/fleet"
)

func TestPeers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := func(name string, left time.Duration) fleet.Destination {
		return fleet.Destination{Name: name, State: "open", Reason: "breaker_open", Since: now.Add(-time.Minute), Next: now.Add(left)}
	}
	report := func(id string, shared []string, ds ...fleet.Destination) fleet.Report {
		return fleet.Report{ID: id, Now: now, Shared: shared, Destinations: ds}
	}
	forced := open("x", time.Minute)
	forced.Override = "forced_open"
	half := open("x", time.Minute)
	half.State = "half_open"
	over := open("x", 0)
	over.Next = time.Time{}
	throttled := fleet.Destination{Name: "x", State: "closed", Reason: "throttled", Next: now.Add(time.Minute)}
	many := report("b", []string{"w"})
	many.MoreShared = 7

	for _, tt := range []struct {
		name    string
		reports []fleet.Report
		want    map[string]fleet.Peer
	}{
		{"nobody is there", nil, map[string]fleet.Peer{"x": {Users: 1}}},
		{"only itself", []fleet.Report{report("me", []string{"x"}, open("x", time.Minute))}, map[string]fleet.Peer{"x": {Users: 1}}},
		{"others use it", []fleet.Report{report("me", []string{"x"}), report("b", []string{"x", "y"}), report("c", []string{"x"}), report("d", nil)}, map[string]fleet.Peer{"x": {Users: 3}}},
		{"one that cannot tell all counts", []fleet.Report{many, report("c", []string{"x"})}, map[string]fleet.Peer{"x": {Users: 3}}},
		{"open elsewhere, the longest counts", []fleet.Report{report("b", nil, open("x", time.Second)), report("c", []string{"x"}, open("x", time.Minute))}, map[string]fleet.Peer{"x": {OpenFor: time.Minute, Users: 2}}},
		{"open elsewhere, and not used here yet", []fleet.Report{report("b", nil, open("y", time.Second))}, map[string]fleet.Peer{"x": {Users: 1}, "y": {OpenFor: time.Second, Users: 1}}},
		{"forced, half-open, throttled, or over", []fleet.Report{report("b", nil, forced), report("c", nil, half), report("d", nil, throttled), report("e", nil, over), report("f", nil, open("x", -time.Second))}, map[string]fleet.Peer{"x": {Users: 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, fleet.Peers(tt.reports, "me", []string{"x"})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
