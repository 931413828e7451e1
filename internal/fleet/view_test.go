package fleet_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/internal/fleet"
)

func TestLook(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := fleet.Destination{Name: "x", State: "open", Reason: "breaker_open", Since: now.Add(-time.Minute), Next: now.Add(20 * time.Second), Waiting: 3}
	half := fleet.Destination{Name: "x", State: "half_open", Reason: "breaker_open", Since: now.Add(-time.Hour), Next: now.Add(30 * time.Second), Waiting: 4}
	ramping := fleet.Destination{Name: "x", State: "half_open", Since: now.Add(-time.Second)}
	other := fleet.Destination{Name: "xy", State: "open", Reason: "breaker_open", Override: "forced_open"}
	report := func(ds ...fleet.Destination) fleet.Report { return fleet.Report{Now: now, Destinations: ds} }
	cut := report(other)
	cut.More = 1

	tests := []struct {
		name    string
		reports []fleet.Report
		want    fleet.View
	}{
		{"nobody is there", nil, fleet.View{}},
		{"closed everywhere", []fleet.Report{report(), report(other)}, fleet.View{Workers: 2, Now: now}},
		{"open at one of two", []fleet.Report{report(), report(open)}, fleet.View{
			Workers: 2, Refusing: 1, Worst: &open, Since: open.Since, Next: open.Next, Waiting: 3, Now: now,
		}},
		{"the earliest of several, and the worst", []fleet.Report{report(half), report(open, other), report(ramping)}, fleet.View{
			Workers: 3, Refusing: 2, Worst: &open, Since: half.Since, Next: open.Next, Waiting: 7, Now: now,
		}},
		{"one that tells too little", []fleet.Report{cut}, fleet.View{Workers: 1, Unknown: 1, Now: now}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, fleet.Look(tt.reports, "x")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
