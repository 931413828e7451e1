package endpoints

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestTallyLosesNothing: however calls, reports and reports that the store did not take follow each other, what was taken in the end leaves the same
// health as reporting each call by itself, but for successes that say nothing new.
func TestTallyLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tally, now := newTally(), time.Unix(1_000_000, 0)
		got, want := map[string]Health{}, map[string]Health{}
		ids := []string{"a", "b", "c"}
		report := func(taken bool) {
			deltas := tally.take(now, 10*time.Minute)
			if !taken {
				tally.putBack(deltas)
				return
			}
			for _, d := range deltas {
				got[d.Endpoint] = got[d.Endpoint].Add(d)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				report(true)
			case 1:
				report(false)
			default:
				id, ok := rapid.SampledFrom(ids).Draw(t, "id"), rapid.Bool().Draw(t, "ok")
				d := Delta{Failures: 1, FirstFailure: now, LastFailure: now}
				if ok {
					d = Delta{Success: now}
				}
				tally.add(id, "e", now, ok)
				want[id] = want[id].Add(d)
			}
		}
		report(true)
		for _, id := range ids {
			g, w := got[id], want[id]
			if w.LastSuccess.Sub(g.LastSuccess) < quietSuccess && g.Failures == 0 && w.Failures == 0 {
				g.LastSuccess = w.LastSuccess
			}
			if w.Failures == 0 { // a success right after it hides when it was
				g.LastFailure = w.LastFailure
			}
			if diff := cmp.Diff(w, g); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", id, diff)
			}
		}
	})
}

// TestTallyIsBounded: what is not reported is one record for each endpoint, and endpoints that nobody calls are forgotten, later those with failures.
func TestTallyIsBounded(t *testing.T) {
	t.Parallel()
	tally, now := newTally(), time.Unix(1_000_000, 0)
	for i := range 10_000 {
		tally.add(fmt.Sprint(i%10), fmt.Sprint(i), now, i%10 < 5)
	}
	if n := len(tally.seen); n != 10 {
		t.Errorf("%d records for 10 endpoints", n)
	}
	if n := len(tally.take(now, 10*time.Minute)); n != 10 {
		t.Errorf("%d reports for 10 endpoints", n)
	}
	for after, want := range map[time.Duration]int{9 * time.Minute: 10, 11 * time.Minute: 5, keepSight: 5} {
		fresh := newTally()
		for i := range 10 {
			fresh.add(fmt.Sprint(i), "e", now, i < 5)
		}
		fresh.take(now, 10*time.Minute)
		if left := fresh.take(now.Add(after), 10*time.Minute); len(left) != 0 || len(fresh.seen) != want {
			t.Errorf("after %s: %d reports, %d endpoints, want %d", after, len(left), len(fresh.seen), want)
		}
	}
	tally.take(now.Add(keepSight+time.Second), 10*time.Minute)
	if n := len(tally.seen); n != 0 {
		t.Errorf("%d endpoints are remembered for ever", n)
	}
}

// TestKeptBackSuccessIsTold: also where no call follows; then the endpoint is forgotten.
func TestKeptBackSuccessIsTold(t *testing.T) {
	t.Parallel()
	tally, now := newTally(), time.Unix(1_000_000, 0)
	tally.add("a", "1", now, true)
	tally.take(now, 10*time.Minute)
	last := now.Add(5 * time.Second)
	tally.add("a", "2", last, true)
	if list := tally.take(now.Add(quietSuccess-1), 10*time.Minute); len(list) != 0 {
		t.Errorf("told within a minute: %+v", list)
	}
	if list := tally.take(now.Add(quietSuccess), 10*time.Minute); len(list) != 1 || !list[0].Success.Equal(last) {
		t.Errorf("told after a minute: %+v", list)
	}
	tally.take(last.Add(10*time.Minute+1), 10*time.Minute)
	if n := len(tally.seen); n != 0 {
		t.Errorf("%d endpoints are remembered for ever", n)
	}
}

// TestQuietSuccesses: successes of a healthy endpoint cost the store one write a minute, and one after a failure is told at once.
func TestQuietSuccesses(t *testing.T) {
	t.Parallel()
	tally, now := newTally(), time.Unix(1_000_000, 0)
	reports := 0
	for range 600 {
		now = now.Add(time.Second)
		tally.add("a", "e", now, true)
		reports += len(tally.take(now, 10*time.Minute))
	}
	if reports != 10 {
		t.Errorf("%d reports in ten minutes", reports)
	}
	tally.add("a", "e", now, false)
	tally.take(now, 10*time.Minute)
	tally.add("a", "e", now.Add(time.Second), true)
	if list := tally.take(now.Add(time.Second), 10*time.Minute); len(list) != 1 || list[0].Success.IsZero() {
		t.Errorf("the end of a failure is not told: %+v", list)
	}
}

func TestConvincedBySeveralEvents(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_000_000, 0)
	type call struct {
		event string
		ok    bool
	}
	for name, c := range map[string]struct {
		calls []call
		since int // the call since when failures count
		want  bool
	}{
		"none":                         {nil, 0, false},
		"one event, again and again":   {[]call{{"a", false}, {"a", false}, {"a", false}}, 0, false},
		"two":                          {[]call{{"a", false}, {"b", false}}, 0, true},
		"two in turns":                 {[]call{{"a", false}, {"b", false}, {"a", false}, {"a", false}}, 1, true},
		"the other one before":         {[]call{{"b", false}, {"a", false}, {"a", false}}, 1, false},
		"a success in between":         {[]call{{"b", false}, {"c", true}, {"a", false}}, 0, false},
		"somebody else saw a success":  {[]call{{"a", false}, {"b", false}, {"a", false}}, 2, false},
		"three, the last two after it": {[]call{{"a", false}, {"b", false}, {"c", false}}, 1, true},
	} {
		tally := newTally()
		for i, call := range c.calls {
			tally.add("e", call.event, start.Add(time.Duration(i)*time.Minute), call.ok)
		}
		if got := tally.convinced("e", start.Add(time.Duration(c.since)*time.Minute), 0); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestConvincedByTime: long silences do not make up for failures.
func TestConvincedByTime(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		calls []time.Duration // when calls failed
		want  bool
	}{
		"each minute for an hour":   {every(time.Minute, 61), true},
		"and not quite":             {every(time.Minute, 60), false},
		"each hour":                 {every(time.Hour, 7), true},
		"six of them":               {every(time.Hour, 6), false},
		"minutes, hours of nothing": {append(every(time.Minute, 20), 10*time.Hour, 10*time.Hour+time.Minute), false},
		"and then for long enough":  {append(every(time.Minute, 20), 10*time.Hour, 10*time.Hour+10*time.Minute, 11*time.Hour, 12*time.Hour, 13*time.Hour), true},
		"a clock that goes back":    {append(every(time.Minute, 20), -time.Hour), false},
	} {
		tally := newTally()
		tally.add("e", "before", start.Add(-3*time.Hour), true)
		for i, at := range c.calls {
			tally.add("e", fmt.Sprint(i), start.Add(at), false)
		}
		if got := tally.convinced("e", start.Add(-24*time.Hour), time.Hour); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		tally.add("e", "ok", start.Add(20*time.Hour), true)
		for i := range 3 {
			tally.add("e", fmt.Sprint(i), start.Add(21*time.Hour), false)
		}
		if tally.convinced("e", start.Add(-24*time.Hour), time.Hour) {
			t.Errorf("%s: a success does not begin anew", name)
		}
	}
}

func every(d time.Duration, n int) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(i) * d
	}
	return all
}

func TestLately(t *testing.T) {
	t.Parallel()
	tally, now := newTally(), time.Unix(1_000_000, 0)
	tally.add("well", "e", now, false)
	tally.add("well", "e", now.Add(time.Minute), true)
	tally.add("sick", "e", now.Add(time.Minute), false)
	tally.add("was well", "e", now, true)
	tally.add("was well", "e", now.Add(time.Minute), false)
	tally.add("long ago", "e", now.Add(-20*time.Minute), false)
	if called, failing := tally.lately(now.Add(time.Minute), 10*time.Minute); called != 3 || failing != 2 {
		t.Errorf("%d called, %d failing", called, failing)
	}
}
