package cli_test

import (
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/fleet"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// One answer for each: what is forced open or throttled has a breaker beside that, which says nothing of use.
func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	next := now.Add(time.Minute)
	for name, tt := range map[string]struct {
		destination fleet.Destination
		want        string
	}{
		"open":            {fleet.Destination{State: "open", Reason: "breaker_open", Since: now, Next: next}, "breaker open, refused at 1 of 2 workers, not closed since 2026-01-02T03:04:05Z, next try at 2026-01-02T03:05:05Z, about 0 jobs put back for it"},
		"throttled":       {fleet.Destination{State: "closed", Reason: "throttled", Next: next, Waiting: 2}, "throttled (Retry-After) until 2026-01-02T03:05:05Z, at 1 of 2 workers, about 2 jobs put back for it"},
		"throttled, open": {fleet.Destination{State: "open", Reason: "throttled", Since: now, Next: next}, "breaker open, refused at 1 of 2 workers, not closed since 2026-01-02T03:04:05Z, next try at 2026-01-02T03:05:05Z, about 0 jobs put back for it"},
		"forced open":     {fleet.Destination{State: "closed", Override: "forced_open", Reason: "forced_open", Next: next}, "breaker forced open at 1 of 2 workers, about 0 jobs put back for it"},
	} {
		tt.destination.Name = "x"
		v := fleet.Look([]fleet.Report{{Now: now}, {Now: now, Destinations: []fleet.Destination{tt.destination}}}, "x")
		if got := cli.Breaker(v); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
		if tt.destination.Override != "" && (!v.Next.IsZero() || !v.Worst.Next.IsZero()) {
			t.Errorf("%s: next try at %s", name, v.Next)
		}
	}
}
