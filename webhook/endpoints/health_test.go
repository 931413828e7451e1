package endpoints

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestHealthAddsInAnyOrder has several workers watch one endpoint and report in any order. What holds: failures are left exactly if one came
// after the last success, and they are said to last for no longer than they do.
func TestHealthAddsInAnyOrder(t *testing.T) {
	t.Parallel()
	start := time.Unix(1e9, 0).UTC()
	rapid.Check(t, func(t *rapid.T) {
		var deltas []Delta
		var failures []time.Time
		var success time.Time
		for range rapid.IntRange(1, 4).Draw(t, "workers") {
			var d Delta
			now := start
			for range rapid.IntRange(0, 8).Draw(t, "calls") {
				now = now.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "seconds")) * time.Second)
				if rapid.Bool().Draw(t, "fails") {
					failures = append(failures, now)
					if d.Failures++; d.Failures == 1 {
						d.FirstFailure = now
					}
					d.LastFailure = now
				} else {
					success = latest(success, now)
					d = Delta{Success: now}
				}
				if rapid.IntRange(0, 2).Draw(t, "reports") == 0 {
					deltas, d = append(deltas, d), Delta{}
				}
			}
			deltas = append(deltas, d)
		}
		var h Health
		for _, d := range rapid.Permutation(deltas).Draw(t, "order") {
			h = h.Add(d)
		}
		left := slices.DeleteFunc(slices.Clone(failures), func(at time.Time) bool { return !at.After(success) })
		slices.SortFunc(left, time.Time.Compare)
		switch {
		case !h.LastSuccess.Equal(success):
			t.Fatalf("last success at %v, want %v", h.LastSuccess, success)
		case (h.Failures > 0) != (len(left) > 0) || h.Failures > int64(len(left)):
			t.Fatalf("%d failures are left, want %d: %v", h.Failures, len(left), deltas)
		case h.FailingSince.IsZero() != (len(left) == 0):
			t.Fatalf("failing since %v with %d failures", h.FailingSince, len(left))
		case len(left) > 0 && (h.FailingSince.Before(left[0]) || h.FailingSince.After(left[len(left)-1])):
			t.Fatalf("failing since %v, want within %v", h.FailingSince, left)
		}
	})
}

func TestHealthOfOneWorkerIsExact(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	h := Health{}.Add(Delta{Failures: 2, FirstFailure: at(1), LastFailure: at(2)}).Add(Delta{Failures: 3, FirstFailure: at(3), LastFailure: at(5)})
	if h.Failures != 5 || !h.FailingSince.Equal(at(1)) || !h.LastFailure.Equal(at(5)) {
		t.Errorf("failing: %+v", h)
	}
	h = h.Add(Delta{Success: at(6), Failures: 1, FirstFailure: at(7)})
	if h.Failures != 1 || !h.FailingSince.Equal(at(7)) || !h.LastSuccess.Equal(at(6)) {
		t.Errorf("after a success: %+v", h)
	}
	h = h.Forget(at(8)).Add(Delta{Failures: 1, FirstFailure: at(8)})
	if h.Failures != 0 || !h.FailingSince.IsZero() || !h.LastFailure.Equal(at(8)) {
		t.Errorf("forgotten: %+v", h)
	}
}
